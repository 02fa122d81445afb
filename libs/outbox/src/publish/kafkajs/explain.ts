import type { PublishFailure } from '../publisher';

/** What kafkajs threw, in a word that does not depend on the client where there is one, and a sentence. */
export function explain(error: unknown): PublishFailure {
  const root = rootOf(error);
  return { code: codeOf(root), message: root.message };
}

/** Names of client errors, in words that do not depend on the client. */
const CLIENT_ERRORS: Readonly<Record<string, string>> = {
  KafkaJSConnectionError: 'CONNECTION_FAILED',
  KafkaJSConnectionClosedError: 'CONNECTION_CLOSED',
  KafkaJSRequestTimeoutError: 'REQUEST_TIMED_OUT',
  KafkaJSBrokerNotFound: 'BROKER_NOT_AVAILABLE',
  KafkaJSSASLAuthenticationError: 'SASL_AUTHENTICATION_FAILED',
  KafkaJSMetadataNotLoaded: 'UNKNOWN_TOPIC_OR_PARTITION',
  KafkaJSTopicMetadataNotLoaded: 'UNKNOWN_TOPIC_OR_PARTITION',
  KafkaJSNotImplemented: 'NOT_IMPLEMENTED',
};

function codeOf(error: Error & { type?: unknown; code?: unknown }): string {
  if (typeof error.type === 'string') return error.type;
  if (typeof error.code === 'string') return error.code;
  return CLIENT_ERRORS[error.name] ?? 'CLIENT_ERROR';
}

/** kafkajs wraps what happened into "retries exceeded" and "not retriable", at times twice. */
export function rootOf(error: unknown): Error & { type?: unknown; code?: unknown } {
  let root = error instanceof Error ? error : new Error(String(error));
  const wrappers = ['KafkaJSNumberOfRetriesExceeded', 'KafkaJSNonRetriableError'];
  while (wrappers.includes(root.name) && root.cause instanceof Error && root.cause !== root) root = root.cause;
  return root;
}
