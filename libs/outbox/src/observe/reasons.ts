import type { OutboxHealthReport } from './outbox-health';

/** Why messages may wait. */
export function relayReasons({ backlog, relay, routes }: Pick<OutboxHealthReport, 'backlog' | 'relay' | 'routes'>): string[] {
  const reasons: string[] = [];
  if (backlog && backlog.dead > 0) reasons.push(`${backlog.dead} messages are dead`);
  if (relay.missingTopics.length > 0) reasons.push(`these topics do not exist: ${relay.missingTopics.join(', ')}`);
  for (const { topic, error } of relay.unavailableTopics) reasons.push(`the topic ${topic} takes nothing: ${error}`);
  for (const { name, trouble } of routes) if (trouble) reasons.push(`${name}: ${trouble.message}`);
  if (relay.lost > 0) reasons.push(`${relay.lost} messages are in no state: somebody has edited the tables`);
  if (relay.trouble) reasons.push(`${relay.trouble.stage}: ${relay.trouble.message}`);
  return reasons;
}

/** Why messages are not consumed. */
export function consumerReasons({ consumers, groups }: Pick<OutboxHealthReport, 'consumers' | 'groups'>): string[] {
  const reasons: string[] = [];
  for (const { consumer, failingSince, lastError, stopped } of consumers) {
    if (failingSince) reasons.push(`${consumer} has failed since ${failingSince.toISOString()}: ${lastError}`);
    if (stopped.length > 0) reasons.push(`${consumer} has stopped ${stopped.join(', ')}`);
  }
  for (const { groupId, since, error, isComingBack } of groups) {
    reasons.push(`the consumer of group ${groupId} is away since ${since.toISOString()}: ${error}${isComingBack ? '' : '; restart the app'}`);
  }
  return reasons;
}
