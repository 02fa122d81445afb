import { TOPIC_MAY_WAIT, TOPIC_WAITS } from '../publish/outcome';
import type { PublishFailure, PublishOutcome } from '../publish/publisher';
import type { ClaimedMessage, ParkedMessage, RetriedMessage, Settlement, WaitingMessage } from '../store/claim';
import { orderKey } from '../store/order-key';
import { backoff, type BackoffOptions } from './backoff';

/** What becomes of a key whose first message is given up. */
export type AfterParking = 'continue' | 'block';

export interface SettlementPolicy extends BackoffOptions {
  readonly maxAttempts: number;
  readonly onExhausted: AfterParking | ((message: ClaimedMessage) => AfterParking);
}

/** A message whose topic takes nothing, and why. */
export interface TopicWait extends WaitingMessage {
  readonly failure: PublishFailure;
}

export interface RelaySettlement extends Settlement {
  readonly waiting: readonly TopicWait[];
}

/** A topic that takes nothing is tried again after so many times the pause before a second attempt. */
const TOPIC_DELAYS = 5;

/**
 * Decides what becomes of each published message. The first message of a key that is not acknowledged stops its key:
 * what follows it counts as not tried, whatever the publisher says. If it is on the topic all the same, it comes again
 * behind the first, and the last record of the key is the newest.
 *
 * @param lasting whether batches before this one were not answered for as a whole either
 */
export function toSettlement(
  messages: readonly ClaimedMessage[],
  outcomes: readonly PublishOutcome[],
  policy: SettlementPolicy,
  lasting = false,
): RelaySettlement {
  const sent: ClaimedMessage[] = [];
  const retried: RetriedMessage[] = [];
  const parked: ParkedMessage[] = [];
  const waiting: TopicWait[] = [];
  const stopped = new Set<string>();
  const topics = new Map<string, PublishFailure>();
  messages.forEach((message, index) => {
    const outcome = outcomes[index];
    if (outcome?.status !== 'unknown') return;
    const { code } = outcome.failure;
    if (TOPIC_WAITS.has(code) || (lasting && TOPIC_MAY_WAIT.has(code))) topics.set(topicInLane(message), outcome.failure);
  });

  for (const [index, message] of messages.entries()) {
    const outcome = outcomes[index];
    // Seldom is anything stopped, and then no key is named.
    const isStopped = stopped.size > 0 && stopped.has(orderKey(message));
    if (outcome?.status === 'acknowledged' && !isStopped) {
      sent.push(message);
      continue;
    }
    stopped.add(orderKey(message));
    if (outcome?.status === 'refused' && !isStopped) {
      const refused = { message, error: `${outcome.failure.code}: ${outcome.failure.message}` };
      const attempts = message.attempts + 1;
      if (attempts >= policy.maxAttempts) parked.push({ ...refused, blocks: blocks(message, policy) });
      else retried.push({ ...refused, delayMs: backoff(attempts, policy) });
    } else {
      const failure = topics.get(topicInLane(message));
      if (failure) waiting.push({ message, failure, delayMs: topicDelay(policy) });
    }
  }
  return { sent, retried, parked, waiting };
}

/** Whether nothing at all became of the messages. */
export function isEmpty({ sent, retried, parked, waiting }: Settlement): boolean {
  return sent.length + retried.length + parked.length + waiting.length === 0;
}

/** Whether it is not known what became of a message that was sent: not one that waits behind another of its key. */
export function isUnanswered(outcome: PublishOutcome): boolean {
  return outcome.status === 'unknown' && !TOPIC_WAITS.has(outcome.failure.code) && !outcome.failure.code.startsWith('BEHIND_');
}

function blocks(message: ClaimedMessage, { onExhausted }: SettlementPolicy): boolean {
  if (typeof onExhausted !== 'function') return onExhausted === 'block';
  try {
    return onExhausted(message) === 'block';
  } catch {
    // Of the two mistakes, this one can be mended.
    return true;
  }
}

function topicDelay({ retryDelay, maxRetryDelay }: SettlementPolicy): number {
  return Math.min(retryDelay * TOPIC_DELAYS, maxRetryDelay);
}

function topicInLane({ topic, lane }: ClaimedMessage): string {
  return `${lane} ${topic}`;
}
