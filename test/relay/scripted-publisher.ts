import type { Publisher, PublisherFactory, PublishOutcome, PublishRecord } from '../../libs/outbox/src/publish/publisher';

export type Answer = (records: readonly PublishRecord[]) => readonly PublishOutcome[] | Promise<readonly PublishOutcome[]>;

export const acknowledged: PublishOutcome = { status: 'acknowledged', partition: 0, offset: null };
export const refused: PublishOutcome = { status: 'refused', failure: { code: 'MESSAGE_TOO_LARGE', message: 'too large' } };
export const unanswered: PublishOutcome = { status: 'unknown', failure: { code: 'TIMEOUT', message: 'no answer' } };
export const topicMissing: PublishOutcome = { status: 'unknown', failure: { code: 'UNKNOWN_TOPIC_OR_PARTITION', message: 'no such topic' } };

/** Of a key nothing is stored after the first that is not: what every publisher must hold to. */
function inOrder(records: readonly PublishRecord[], outcomes: readonly PublishOutcome[]): readonly PublishOutcome[] {
  const stopped = new Set<string>();
  return outcomes.map((outcome, index) => {
    const { topic, key } = records[index] ?? { topic: '', key: null };
    if (key === null) return outcome;
    if (stopped.has(`${topic} ${key}`)) return { status: 'unknown', failure: { code: 'BEHIND_REFUSED', message: 'not sent' } };
    if (outcome.status !== 'acknowledged') stopped.add(`${topic} ${key}`);
    return outcome;
  });
}

/** Publishers that answer as the test says, and a note of all that they were asked. */
export class ScriptedPublishers {
  /** Records that were acknowledged, in order. */
  readonly published: PublishRecord[] = [];
  /** Every record that was handed over, in order. */
  readonly tried: PublishRecord[] = [];
  readonly journal: ('create' | 'connect' | 'publish' | 'published' | 'close')[] = [];
  answer: Answer = (records) => records.map(() => acknowledged);
  connect: () => Promise<void> = async () => undefined;
  onClose: () => void | Promise<void> = () => undefined;

  readonly factory: PublisherFactory = (): Publisher => {
    this.journal.push('create');
    return {
      connect: async () => {
        this.journal.push('connect');
        await this.connect();
      },
      publish: async (records) => {
        this.journal.push('publish');
        this.tried.push(...records);
        const outcomes = inOrder(records, await this.answer(records));
        this.published.push(...records.filter((_, index) => outcomes[index]?.status === 'acknowledged'));
        this.journal.push('published');
        return outcomes;
      },
      close: async () => {
        this.journal.push('close');
        await this.onClose();
      },
    };
  };

  /** Resolves with the first batch that is handed over from now on; the batch waits until it is let go. */
  hang(): { readonly reached: Promise<readonly PublishRecord[]>; readonly letGo: (answer?: Answer) => void } {
    const before = this.answer;
    let letGo!: (answer?: Answer) => void;
    const gate = new Promise<Answer>((resolve) => {
      letGo = (answer = before) => resolve(answer);
    });
    const reached = new Promise<readonly PublishRecord[]>((resolve) => {
      this.answer = async (records) => {
        this.answer = before;
        resolve(records);
        return (await gate)(records);
      };
    });
    return { reached, letGo };
  }

  /** The journal but for the connecting. */
  get acts(): string[] {
    return this.journal.filter((entry) => entry !== 'connect');
  }

  get values(): (string | null)[] {
    return this.published.map(({ value }) => value);
  }
}
