import type { RelayOptions } from 'nestjs-transactional-outbox';
import { type KafkaClientName, readEnvironment, type Variables } from '../../shop/src/environment.js';

export interface RelayEnvironment {
  readonly databaseUrl: string;
  readonly brokers: readonly string[];
  readonly kafkaClient: KafkaClientName;
  /** What is not given is left to the library's defaults. */
  readonly relay: RelayOptions;
}

/** The relay's numbers, each with the variable that sets it. */
const NUMBERS = {
  OUTBOX_CONCURRENCY: 'concurrency',
  OUTBOX_BATCH_SIZE: 'batchSize',
  OUTBOX_BATCH_BYTES: 'batchBytes',
  OUTBOX_LANES_PER_CLAIM: 'lanesPerClaim',
  OUTBOX_POLL_INTERVAL: 'pollInterval',
  OUTBOX_PUBLISH_TIMEOUT: 'publishTimeout',
  OUTBOX_MAX_ATTEMPTS: 'maxAttempts',
  OUTBOX_RETRY_DELAY: 'retryDelay',
  OUTBOX_MAX_RETRY_DELAY: 'maxRetryDelay',
  OUTBOX_SHUTDOWN_TIMEOUT: 'shutdownTimeout',
} as const satisfies Record<string, keyof RelayOptions>;

/** @throws EnvironmentError */
export function relayEnvironment(variables: Variables): RelayEnvironment {
  return readEnvironment(variables, (reader) => {
    const given = Object.entries(NUMBERS).flatMap(([variable, option]) => {
      const value = reader.wholeNumber(variable, { least: 1 });
      return value === undefined ? [] : [[option, value] as const];
    });
    return {
      databaseUrl: reader.databaseUrl(),
      brokers: reader.brokers(),
      kafkaClient: reader.kafkaClient(),
      relay: Object.fromEntries(given),
    };
  });
}
