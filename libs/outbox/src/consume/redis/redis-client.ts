import type { Cluster, Redis } from 'ioredis';
import { RedisUnavailableError } from '../../errors';

/** A client of the app's own. */
export type RedisClient = Redis | Cluster;

/** What must not be interrupted by others runs as a script, inside Redis. Each says whether the token still held. */
const IF_HELD = `if redis.call('GET', KEYS[1]) == ARGV[1] then`;
const SCRIPTS = {
  complete: `${IF_HELD} redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) return 1 end return 0`,
  renew: `${IF_HELD} redis.call('PEXPIRE', KEYS[1], ARGV[2]) return 1 end return 0`,
  release: `${IF_HELD} redis.call('DEL', KEYS[1]) return 1 end return 0`,
} as const;

/** The few commands that dedupe needs, each with a deadline: by default a client without a connection waits for long. */
export class RedisCommands {
  constructor(
    private readonly client: RedisClient,
    private readonly timeout: number,
  ) {}

  async setIfAbsent(key: string, value: string, ms: number): Promise<boolean> {
    const sent = this.client.set(key, value, 'PX', ms, 'NX');
    try {
      return (await this.within(() => sent)) === 'OK';
    } catch (error) {
      // It may be carried out yet, from the client's queue, and then nobody would hold what it claims.
      void sent.then((reply) => reply === 'OK' && this.ifHeld('release', key, value)).catch(() => undefined);
      throw error;
    }
  }

  get(key: string): Promise<string | null> {
    return this.within(() => this.client.get(key));
  }

  /** False when the key holds something else than the token by now. */
  async ifHeld(script: keyof typeof SCRIPTS, key: string, token: string, ...args: (string | number)[]): Promise<boolean> {
    return (await this.within(() => this.client.eval(SCRIPTS[script], 1, key, token, ...args))) === 1;
  }

  private async within<T>(command: () => Promise<T>): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    const deadline = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`no answer within ${this.timeout} ms`)), this.timeout);
    });
    try {
      return await Promise.race([command(), deadline]);
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new RedisUnavailableError(`Redis cannot tell what has been handled: ${reason}`, { cause });
    } finally {
      clearTimeout(timer);
    }
  }
}
