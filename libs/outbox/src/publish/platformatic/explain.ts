import { type PartitionAnswer, unitOf } from '../kafka/session';
import type { PublishFailure } from '../publisher';

/** What the errors of the client may carry; it groups and wraps them in several ways. */
interface ClientError {
  readonly code?: unknown;
  readonly message?: unknown;
  /** Kafka's name for what a broker answered. */
  readonly apiId?: unknown;
  /** What the broker said beside it. */
  readonly serverErrorMessage?: unknown;
  readonly errors?: readonly unknown[];
  readonly cause?: unknown;
  /** The answer that was an error, whole. */
  readonly response?: { readonly responses?: readonly TopicAnswer[] };
  /** What other brokers stored of the same batch. */
  readonly produced?: { readonly offsets?: readonly StoredPartition[] };
}

interface TopicAnswer {
  readonly name: string;
  readonly partitionResponses: readonly { readonly index: number; readonly errorCode: number; readonly baseOffset: bigint }[];
}

export interface StoredPartition {
  readonly topic: string;
  readonly partition: number;
  readonly offset: bigint;
}

const UNKNOWN_TOPIC = /^Unknown topic /;

/** Names of client errors, in words that do not depend on the client. */
const CLIENT_ERRORS: Readonly<Record<string, string>> = {
  PLT_KFK_AUTHENTICATION: 'SASL_AUTHENTICATION_FAILED',
  PLT_KFK_NETWORK: 'CONNECTION_FAILED',
  PLT_KFK_TIMEOUT: 'REQUEST_TIMED_OUT',
};

/** What the client threw, in a word that does not depend on the client where there is one, and a sentence. */
export function explain(error: unknown): PublishFailure {
  const all = [...within(error)];
  const byBroker = all.find((one) => typeof one.apiId === 'string');
  if (byBroker !== undefined) return { code: String(byBroker.apiId), message: textOf(byBroker) };
  const missing = all.find((one) => one.code === 'PLT_KFK_USER' && UNKNOWN_TOPIC.test(textOf(one)));
  if (missing !== undefined) return { code: 'UNKNOWN_TOPIC_OR_PARTITION', message: textOf(missing) };
  // The innermost says most: a network error wraps what the socket said.
  const root = all.findLast((one) => typeof one.code === 'string') ?? all.at(-1);
  const code = typeof root?.code === 'string' ? root.code : 'CLIENT_ERROR';
  return { code: CLIENT_ERRORS[code] ?? code, message: root === undefined ? String(error) : textOf(root) };
}

/** What brokers said of partitions, as far as a failed send tells. */
export function answersWithin(error: unknown): Map<string, PartitionAnswer> {
  const answers = new Map<string, PartitionAnswer>();
  for (const { response, produced } of within(error)) {
    for (const [unit, answer] of answersOf(produced?.offsets ?? [])) answers.set(unit, answer);
    for (const { name, partitionResponses } of response?.responses ?? []) {
      for (const { index, errorCode, baseOffset } of partitionResponses) {
        answers.set(unitOf(name, index), { errorCode, baseOffset: offsetOf(baseOffset) });
      }
    }
  }
  return answers;
}

/** What a successful send names. */
export function answersOf(stored: readonly StoredPartition[]): Map<string, PartitionAnswer> {
  return new Map(
    stored.map(({ topic, partition, offset }) => [
      unitOf(topic, partition),
      { errorCode: 0, baseOffset: offsetOf(offset) },
    ]),
  );
}

function offsetOf(offset: bigint): bigint | null {
  return offset < 0n ? null : offset;
}

/** An error and all that are inside it, from the outside in. */
function* within(error: unknown): Generator<ClientError> {
  if (typeof error !== 'object' || error === null) return;
  const one: ClientError = error;
  yield one;
  for (const inner of Array.isArray(one.errors) ? one.errors : []) yield* within(inner);
  yield* within(one.cause);
}

function textOf({ serverErrorMessage, message }: ClientError): string {
  if (typeof serverErrorMessage === 'string') return serverErrorMessage;
  return typeof message === 'string' ? message : 'the client failed without saying why';
}
