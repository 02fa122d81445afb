/** How the relay works. Times are in milliseconds. */
export interface RelayOptions {
  /** Whether this process relays. Default true. */
  readonly enabled?: boolean;
  /** Workers, each with a connection and a publisher of its own. Default 2; on SQLite always 1. */
  readonly concurrency?: number;
  /** Messages that a worker takes at once. Default 1000. */
  readonly batchSize?: number;
  /** Bytes of payload that a worker takes at once. Default 4 MiB. */
  readonly batchBytes?: number;
  /** Lanes that a worker takes at once. Default 16. */
  readonly lanesPerClaim?: number;
  /** How often to look without being woken: the safety net for commits of other processes. Default 500 ms. */
  readonly pollInterval?: number;
  /** How long the broker may take to answer a batch, the client's own retries included. Default 3000 ms. */
  readonly publishTimeout?: number;
  /** Attempts before a refused message is parked as dead. Default 5. */
  readonly maxAttempts?: number;
  /** Pause before the second attempt; it doubles with each further one, and is spread by a quarter. Default 1000 ms. */
  readonly retryDelay?: number;
  /** Longest pause between attempts, and between tries to reach a broker or database that is away. Default 30 s. */
  readonly maxRetryDelay?: number;
  /** How long shutdown waits for the running batch. Default 10 s. */
  readonly shutdownTimeout?: number;
}

export const DEFAULT_RELAY_OPTIONS: Required<RelayOptions> = {
  enabled: true,
  concurrency: 2,
  batchSize: 1000,
  batchBytes: 4 * 1024 * 1024,
  lanesPerClaim: 16,
  pollInterval: 500,
  publishTimeout: 3000,
  maxAttempts: 5,
  retryDelay: 1000,
  maxRetryDelay: 30_000,
  shutdownTimeout: 10_000,
};
