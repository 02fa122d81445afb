import { Redis } from 'ioredis';
import type { Publisher, PublisherFactory, PublishOptions, PublishOutcome, PublishRecord } from 'nestjs-transactional-outbox';

/** Publishes to Redis streams: a topic is a stream, and the first record makes it. */
export function redisStreamPublisher(url: string): PublisherFactory {
  return () => new RedisStreamPublisher(url);
}

const unknown = (code: string, message: string): PublishOutcome => ({ status: 'unknown', failure: { code, message } });

class RedisStreamPublisher implements Publisher {
  private redis: Redis | undefined;
  private busy = false;
  private closed = false;

  constructor(private readonly url: string) {}

  async connect(): Promise<void> {
    await (await this.connection()).ping();
  }

  async publish(records: readonly PublishRecord[], { timeout }: PublishOptions): Promise<readonly PublishOutcome[]> {
    if (this.busy) throw new Error('publish is still running');
    this.busy = true;
    const over = new AbortController();
    const timer = setTimeout(() => (over.abort(), this.stop()), timeout); // what waits for an answer then fails at once
    try {
      const failed = new Set<string>();
      const outcomes: PublishOutcome[] = [];
      for (const record of records) {
        const order = JSON.stringify([record.topic, record.key]);
        let outcome: PublishOutcome;
        if (failed.has(order)) outcome = unknown('BEHIND_FAILED', 'an earlier record of its key failed');
        else if (over.signal.aborted) outcome = unknown('TIMEOUT', 'the time is over');
        else outcome = await this.add(record);
        if (record.key !== null && outcome.status !== 'acknowledged') failed.add(order);
        outcomes.push(outcome);
      }
      return outcomes;
    } finally {
      clearTimeout(timer);
      this.busy = false;
    }
  }

  async close(): Promise<void> {
    this.closed = true;
    this.stop();
  }

  private async add({ topic, key, value, headers, timestamp }: PublishRecord): Promise<PublishOutcome> {
    const fields = { key, value, headers: JSON.stringify(Object.entries(headers)), timestamp: `${timestamp}` };
    const present = Object.entries(fields).flatMap(([name, field]) => (field === null ? [] : [name, field]));
    try {
      const id = await (await this.connection()).xadd(topic, '*', ...present);
      return { status: 'acknowledged', partition: 0, offset: id };
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      // Redis has answered: it will not have this record. Everything else leaves open what became of it.
      if (error instanceof Error && error.name === 'ReplyError') return { status: 'refused', failure: { code: 'REPLY_ERROR', message } };
      return unknown(this.closed ? 'CLOSED' : 'CONNECTION_FAILED', message);
    }
  }

  private async connection(): Promise<Redis> {
    if (this.closed) throw new Error('the publisher is closed');
    if (this.redis?.status === 'end') this.redis = undefined;
    // Nothing is sent again behind our back, neither a command nor a batch.
    this.redis ??= new Redis(this.url, { retryStrategy: () => null, maxRetriesPerRequest: 0, connectTimeout: 2_000 }).on('error', () => {});
    return this.redis;
  }

  /** Destroyed, not ended: an end would still send what waits in the socket. */
  private stop(): void {
    this.redis?.stream?.destroy();
    this.redis?.disconnect();
  }
}
