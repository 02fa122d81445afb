import { type CustomTransportStrategy, ServerKafka } from '@nestjs/microservices';
import { InMemoryKafka, type InMemoryKafkaBroker } from './in-memory-kafka';

export interface InMemoryServerOptions {
  /** The consumer group that the handlers read for. */
  readonly groupId: string;
  /** Where the group starts in a topic that it never read: at its beginning, or at what comes next. Default: true. */
  readonly fromBeginning?: boolean;
}

/**
 * Nest's Kafka server over an in-memory broker. It is Nest's own class with another client underneath, so handlers
 * get what they would get from Kafka: the same payload, the same `KafkaContext`, the same meaning of an error.
 */
export class InMemoryServer extends ServerKafka implements CustomTransportStrategy {
  private readonly broker: InMemoryKafkaBroker;
  private readonly fromBeginning: boolean;

  constructor(broker: InMemoryKafkaBroker, options: InMemoryServerOptions) {
    super({ postfixId: '', consumer: { groupId: options.groupId }, client: { clientId: options.groupId, brokers: [] } });
    this.broker = broker;
    this.fromBeginning = options.fromBeginning ?? true;
  }

  /** @internal Nest 10 and 11 use what this answers as it is, Nest 12 awaits it. */
  override createClient<T>(): Promise<T> {
    return new InMemoryKafka(this.broker, this.logger, this.fromBeginning) as unknown as Promise<T>;
  }

  /**
   * @internal Nest 10 and 11 load kafkajs when a server is made, keep it for all servers and end the process when it
   * is not installed; this server does without, and must not get in the way of a real one.
   */
  protected override loadPackage<T>(_name: string, _context: string, loader?: () => T): T | Promise<T> {
    try {
      return loader === undefined ? ({} as T) : loader();
    } catch {
      return {} as T;
    }
  }
}
