import { OutboxOptionsError } from '../errors';
import { assertKnown } from '../event/assert-known';
import { isTopic } from '../event/to-message';
import { type ConsumeOptions, DEFAULT_RETRY, type IdempotentConsumerOptions, type SequenceOptions } from './consumer-options';

const CHOICES = {
  onExhausted: ['dead-letter', 'stop', 'skip'],
  concurrentCopies: ['wait', 'fail'],
  missingMessageId: ['refuse', 'offset'],
} as const;

const SEQUENCE: Record<keyof SequenceOptions, true> = { of: true, key: true, onStale: true };

const CONSUME = { ...CHOICES, retry: true, isRetryable: true } satisfies Record<keyof ConsumeOptions, unknown>;

const CONSUMER = { ...CONSUME, dedupe: true, isApplied: true, sequence: true, events: true, messageId: true, deadLetterTopic: true, dataSource: true } satisfies Record<
  keyof IdempotentConsumerOptions,
  unknown
>;

/** @throws OutboxOptionsError naming the option */
export function assertConsumeOptions(options: ConsumeOptions, prefix: string): void {
  for (const [name, choices] of Object.entries(CHOICES)) {
    const value = options[name as keyof typeof CHOICES];
    if (value !== undefined && !(choices as readonly string[]).includes(value)) {
      throw new OutboxOptionsError(`${prefix}${name} must be ${choices.map((choice) => `"${choice}"`).join(' or ')}.`);
    }
  }
  assertFunction(options.isRetryable, `${prefix}isRetryable`);
  const { retry = {} } = options;
  if (typeof retry !== 'object' || retry === null) throw new OutboxOptionsError(`${prefix}retry must be an object.`);
  assertKnown(retry, DEFAULT_RETRY, `${prefix}retry.`);
  for (const [name, value] of Object.entries(retry)) {
    if (value !== undefined && (!Number.isSafeInteger(value) || value < 1)) {
      throw new OutboxOptionsError(`${prefix}retry.${name} must be a whole number of at least 1, not ${String(value)}.`);
    }
  }
}

/**
 * From JavaScript, or past a cast, any combination may come.
 *
 * @throws OutboxOptionsError naming the option
 */
export function assertConsumerOptions(options: IdempotentConsumerOptions, prefix: string): void {
  assertKnown(options, CONSUMER, prefix);
  assertConsumeOptions(options, prefix);
  assertDedupe(options, prefix);
  assertSequence(options, prefix);
  assertFunction(options.messageId, `${prefix}messageId`);
  const { events, deadLetterTopic, dataSource } = options as Record<string, unknown>;
  if (events !== undefined && (!Array.isArray(events) || events.length === 0)) {
    throw new OutboxOptionsError(`${prefix}events must be a list of at least one class.`);
  }
  if (deadLetterTopic !== undefined && !(typeof deadLetterTopic === 'string' && isTopic(deadLetterTopic))) {
    throw new OutboxOptionsError(`${prefix}deadLetterTopic "${String(deadLetterTopic)}" is not a topic name.`);
  }
  if (dataSource !== undefined && typeof dataSource !== 'string') {
    throw new OutboxOptionsError(`${prefix}dataSource must be the name of a data source.`);
  }
}

/** How repeats are to be recognised. @throws OutboxOptionsError */
export function assertDedupe(options: { readonly dedupe?: unknown; readonly isApplied?: unknown; readonly concurrentCopies?: unknown }, prefix: string): void {
  const { dedupe = 'table', isApplied, concurrentCopies } = options;
  if (!['table', 'state', 'redis'].includes(dedupe as string)) {
    throw new OutboxOptionsError(`${prefix}dedupe must be "table" or "state" or "redis".`);
  }
  if (dedupe === 'state' ? typeof isApplied !== 'function' : isApplied !== undefined) {
    throw new OutboxOptionsError(`${prefix}isApplied must be a function, with dedupe "state" and only there.`);
  }
  if (dedupe === 'state' && concurrentCopies !== undefined) {
    throw new OutboxOptionsError(`${prefix}concurrentCopies has no effect with dedupe "state".`);
  }
}

function assertSequence({ dedupe, sequence }: { dedupe?: string; sequence?: SequenceOptions }, prefix: string): void {
  if (sequence === undefined) return;
  if (dedupe === 'redis') throw new OutboxOptionsError(`${prefix}sequence needs the transaction that dedupe "redis" does not have.`);
  if (typeof sequence !== 'object' || sequence === null) throw new OutboxOptionsError(`${prefix}sequence must be an object.`);
  assertKnown(sequence, SEQUENCE, `${prefix}sequence.`);
  const { of, key, onStale = 'skip' } = sequence;
  if (typeof of !== 'function' || (key !== undefined && typeof key !== 'function')) {
    throw new OutboxOptionsError(`${prefix}sequence needs a function "of", and may have a function "key".`);
  }
  if (onStale !== 'skip' && onStale !== 'dead-letter') {
    throw new OutboxOptionsError(`${prefix}sequence.onStale must be "skip" or "dead-letter".`);
  }
}

function assertFunction(value: unknown, name: string): void {
  if (value !== undefined && typeof value !== 'function') throw new OutboxOptionsError(`${name} must be a function.`);
}
