import { Logger } from '@nestjs/common';
import type { WireFormat } from '../publish/wire-record';
import type { Publisher, PublisherFactory, PublishOutcome } from '../publish/publisher';
import type { ClaimedMessage } from '../store/claim';
import { orderKey } from '../store/order-key';

/** How much longer than its timeout a publisher may take before it counts as hung. */
const GRACE = 1000;
/** How long a publisher may take to close. */
const CLOSE_TIMEOUT = 5000;

/** A publisher rejected or hung, which none may. */
export class PublisherFault extends Error {
  override readonly name = 'PublisherFault';
}

/** The publisher of one worker: made when needed, and closed for good before anything is sent in its place. */
export class WorkerPublisher {
  private readonly logger = new Logger('OutboxRelay');
  private publisher: Publisher | undefined;
  private closing: Promise<void> | undefined;
  private busy = false;

  constructor(
    private readonly factory: PublisherFactory,
    private readonly format: WireFormat,
    private readonly timeout: number,
  ) {}

  async connect(): Promise<void> {
    await this.closing;
    this.publisher ??= this.factory();
    await this.publisher.connect();
  }

  /**
   * One outcome for each message. When it returns, nothing of the batch is on its way.
   *
   * @throws PublisherFault after the publisher was closed
   */
  async publish(messages: readonly ClaimedMessage[]): Promise<readonly PublishOutcome[]> {
    await this.closing;
    const refusals = refuseUnfit(messages, this.factory.capabilities?.tombstones !== false);
    const sendable = messages.filter((message) => !refusals.has(message));
    if (sendable.length === 0) return messages.map((message) => refusals.get(message) ?? NO_OUTCOME);
    let outcomes: readonly PublishOutcome[];
    this.busy = true;
    try {
      this.publisher ??= this.factory();
      const records = sendable.map(this.format);
      outcomes = await bounded(this.publisher.publish(records, { timeout: this.timeout }), this.timeout + GRACE, 'publish');
    } catch (error) {
      await this.close();
      throw error instanceof PublisherFault
        ? error
        : new PublisherFault(`The publisher rejected: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
    } finally {
      this.busy = false;
    }
    let next = 0;
    return messages.map((message) => refusals.get(message) ?? outcomes[next++] ?? NO_OUTCOME);
  }

  /** Stops what is being sent, if anything is. */
  abort(): void {
    if (this.busy) void this.close();
  }

  /** Never fails. */
  close(): Promise<void> {
    const { publisher } = this;
    this.publisher = undefined;
    if (!publisher) return this.closing ?? Promise.resolve();
    const closing = bounded(publisher.close(), CLOSE_TIMEOUT, 'close')
      .catch((error: unknown) => {
        this.logger.error(`A publisher could not be closed; late copies of messages are possible: ${String(error)}`);
      })
      .finally(() => {
        if (this.closing === closing) this.closing = undefined;
      });
    this.closing = closing;
    return closing;
  }
}

const NO_OUTCOME: PublishOutcome = {
  status: 'unknown',
  failure: { code: 'NO_OUTCOME', message: 'the publisher gave no outcome for the message' },
};

/** Refuses what cannot be sent as it is, with what comes after it in its key. */
function refuseUnfit(messages: readonly ClaimedMessage[], tombstones: boolean): ReadonlyMap<ClaimedMessage, PublishOutcome> {
  const refusals = new Map<ClaimedMessage, PublishOutcome>();
  const stopped = new Set<string>();
  for (const message of messages) {
    if (stopped.size > 0 && stopped.has(orderKey(message))) {
      refusals.set(message, { status: 'unknown', failure: { code: 'BEHIND_REFUSED', message: 'not sent' } });
    } else if (message.defect !== null) {
      stopped.add(orderKey(message));
      refusals.set(message, { status: 'refused', failure: { code: 'DEFECTIVE_ROW', message: message.defect } });
    } else if (message.payload === null && !tombstones) {
      stopped.add(orderKey(message));
      refusals.set(message, { status: 'refused', failure: { code: 'NO_TOMBSTONES', message: 'The broker has no record without a value.' } });
    }
  }
  return refusals;
}

async function bounded<T>(promise: Promise<T>, milliseconds: number, what: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new PublisherFault(`The publisher's ${what}() has not returned for ${milliseconds} ms.`)), milliseconds);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
