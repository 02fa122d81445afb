export type KafkaClientName = 'kafkajs' | 'platformatic';

export type Variables = Readonly<Record<string, string | undefined>>;

/** The environment lacks something, or holds what cannot be meant. The message names every such variable. */
export class EnvironmentError extends Error {
  override readonly name = 'EnvironmentError';

  constructor(readonly problems: readonly string[]) {
    super(['The environment is not complete:', ...problems.map((problem) => `  ${problem}`)].join('\n'));
  }
}

const DATABASE_URL = /^(mysql|mariadb|postgres|postgresql):\/\/[^/]+\/.+/;

/** Reads environment variables and notes what is wrong, so that one attempt to start names all of it. */
export class EnvironmentReader {
  readonly problems: string[] = [];

  constructor(private readonly variables: Variables) {}

  databaseUrl(): string {
    const url = this.required('DATABASE_URL', 'mysql://root@localhost:3306/shop');
    if (url !== '' && !DATABASE_URL.test(url)) {
      // Never the value itself: it holds a password.
      this.problems.push('DATABASE_URL must be mysql://…, mariadb://… or postgres://… with a database at its end.');
    }
    return url;
  }

  brokers(): string[] {
    const list = this.required('KAFKA_BROKERS', 'localhost:9092 (several: with commas)');
    return list.split(',').map((broker) => broker.trim()).filter((broker) => broker !== '');
  }

  wholeNumber(name: string, { least, most = Number.MAX_SAFE_INTEGER }: { least: number; most?: number }): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const value = Number(text);
    if (Number.isInteger(value) && value >= least && value <= most) return value;
    const range = most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`;
    this.problems.push(`${name} must be a whole number ${range}, not "${text}".`);
    return undefined;
  }

  port(otherwise: number): number {
    return this.wholeNumber('PORT', { least: 0, most: 65_535 }) ?? otherwise;
  }

  onOff(name: string, otherwise: boolean): boolean {
    const text = this.text(name);
    if (text === undefined) return otherwise;
    if (text !== 'on' && text !== 'off') this.problems.push(`${name} must be "on" or "off", not "${text}".`);
    return text === 'on';
  }

  kafkaClient(): KafkaClientName {
    const text = this.text('OUTBOX_KAFKA_CLIENT') ?? 'kafkajs';
    if (text === 'kafkajs' || text === 'platformatic') return text;
    this.problems.push(`OUTBOX_KAFKA_CLIENT must be "kafkajs" or "platformatic", not "${text}".`);
    return 'kafkajs';
  }

  private required(name: string, example: string): string {
    const text = this.text(name);
    if (text === undefined) this.problems.push(`${name} is missing, such as ${example}.`);
    return text ?? '';
  }

  /** An empty variable counts as none: that is how it is unset in many compose files. */
  private text(name: string): string | undefined {
    return this.variables[name]?.trim() || undefined;
  }
}

/** @throws EnvironmentError */
export function readEnvironment<T>(variables: Variables, read: (reader: EnvironmentReader) => T): T {
  const reader = new EnvironmentReader(variables);
  const environment = read(reader);
  if (reader.problems.length > 0) throw new EnvironmentError(reader.problems);
  return environment;
}
