import type { PublishOutcome } from '../publish/publisher';
import type { ClaimedMessage, RefusedMessage, Settlement } from '../store/claim';
import { orderKey } from '../store/order-key';
import { backoff, type BackoffOptions } from './backoff';

export interface SettlementPolicy extends BackoffOptions {
  readonly maxAttempts: number;
}

/**
 * Decides what becomes of each published message. The first message of a key that is not acknowledged stops its key:
 * what follows it counts as not tried, whatever the publisher says, or it would overtake.
 */
export function toSettlement(
  messages: readonly ClaimedMessage[],
  outcomes: readonly PublishOutcome[],
  policy: SettlementPolicy,
): Settlement {
  const sent: ClaimedMessage[] = [];
  const retried: (RefusedMessage & { delayMs: number })[] = [];
  const parked: RefusedMessage[] = [];
  const stopped = new Set<string>();

  for (const [index, message] of messages.entries()) {
    const outcome = outcomes[index];
    const key = orderKey(message);
    if (outcome?.status === 'acknowledged') {
      sent.push(message);
    } else if (outcome?.status === 'refused' && !stopped.has(key)) {
      stopped.add(key);
      const refused = { message, error: `${outcome.failure.code}: ${outcome.failure.message}` };
      const attempts = message.attempts + 1;
      if (attempts >= policy.maxAttempts) parked.push(refused);
      else retried.push({ ...refused, delayMs: backoff(attempts, policy) });
    } else {
      stopped.add(key);
    }
  }
  return { sent, retried, parked };
}
