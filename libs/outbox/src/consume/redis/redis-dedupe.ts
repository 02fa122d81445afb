import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { LeaseLostError, OutboxOptionsError } from '../../errors';
import { messageInProgress } from '../../store/message-in-progress';
import type { Consumed, Dedupe, MessageClaim } from '../dedupe';
import { type RedisClient, RedisCommands } from './redis-client';

export interface RedisDedupeOptions {
  /** A client of the app's own, of ioredis; the app also ends it. */
  readonly client: RedisClient;
  /**
   * How long a message stays claimed by a process that has died, in milliseconds. While the handler runs the lease is
   * renewed. Default 30,000.
   */
  readonly lease?: number;
  /**
   * How long a handled message is remembered, in milliseconds. Longer than the topic keeps messages. Default 14 days.
   */
  readonly retention?: number;
  /** What the keys begin with. Default `outbox:consumed:`. */
  readonly prefix?: string;
  /** How long a command may take, in milliseconds, the client's own attempts included. Default 5000. */
  readonly timeout?: number;
}

const DEFAULTS = { lease: 30_000, retention: 14 * 24 * 3600 * 1000, prefix: 'outbox:consumed:', timeout: 5000 } as const;

const DONE = 'done';
/** As long as the databases wait by default. */
const WAIT = 50_000;
const POLL = 100;

/**
 * Recognises repeats by keys in Redis, for handlers whose effects are outside the database. Give it to the module's
 * `consume.redis`; consumers with `dedupe: 'redis'` use it. It is weaker than the table: see docs/consuming.md.
 *
 * @throws OutboxOptionsError naming the option
 */
export function redisDedupe(options: RedisDedupeOptions): Dedupe {
  const complete = { ...DEFAULTS, ...options };
  for (const name of ['lease', 'retention', 'timeout'] as const) {
    if (!Number.isSafeInteger(complete[name]) || complete[name] < 1) {
      throw new OutboxOptionsError(`redisDedupe: ${name} must be a whole number of milliseconds, at least 1.`);
    }
  }
  for (const name of ['set', 'get', 'eval'] as const) {
    if (typeof options.client?.[name] === 'function') continue;
    throw new OutboxOptionsError('redisDedupe: client must be a client of ioredis.');
  }
  return new RedisDedupe(complete);
}

/** `SET NX` in two phases: claimed for as long as its holder lives, then done. */
class RedisDedupe implements Dedupe {
  private readonly redis: RedisCommands;

  constructor(private readonly options: Required<RedisDedupeOptions>) {
    this.redis = new RedisCommands(options.client, options.timeout);
  }

  async run<T>(claim: MessageClaim, handler: () => Promise<T>): Promise<Consumed<T>> {
    const key = `${this.options.prefix}${encodeURIComponent(claim.consumer)}:${claim.messageId}`;
    const token = randomUUID();
    if (!(await this.claim(claim, key, token))) return { duplicate: true };
    const result = await this.holding(key, token, handler);
    if (!(await this.redis.ifHeld('complete', key, token, DONE, this.options.retention))) {
      throw new LeaseLostError(
        `${claim.consumer}: the lease on message ${claim.messageId} was lost while the handler ran, so that it may run again.`,
      );
    }
    return { duplicate: false, result };
  }

  /** False when the message has been handled. */
  private async claim({ consumer, messageId, concurrentCopies }: MessageClaim, key: string, token: string): Promise<boolean> {
    for (const end = Date.now() + WAIT; ; ) {
      if (await this.redis.setIfAbsent(key, token, this.options.lease)) return true;
      const held = await this.redis.get(key);
      if (held === DONE) return false;
      if (held === token) return true;
      if (concurrentCopies === 'fail' || Date.now() > end) throw messageInProgress(consumer, messageId, undefined);
      await setTimeout(POLL);
    }
  }

  private async holding<T>(key: string, token: string, handler: () => Promise<T>): Promise<T> {
    const { lease } = this.options;
    // A renewal that fails leaves two more before the lease ends.
    const timer = setInterval(() => void this.redis.ifHeld('renew', key, token, lease).catch(() => undefined), lease / 3);
    try {
      return await handler();
    } catch (error) {
      // Where that fails too, the lease ends by itself.
      await this.redis.ifHeld('release', key, token).catch(() => undefined);
      throw error;
    } finally {
      clearInterval(timer);
    }
  }
}
