import type { ClaimedMessage, ClaimLimits, Source } from './claim';
import type { Dialect, Sql } from './dialect';
import { readHolds } from './hold';
import { placeName, placeOf } from './order-key';
import { readMessages } from './read-messages';
import { readRefs, type Ref, type Refs } from './refs';

/** A message that must wait behind a hold. */
export interface Follower {
  readonly message: ClaimedMessage;
  readonly behind: Exclude<Source, 'pending'>;
}

/** What a look at the heads met and cannot be sent: it is put in its place when the claim is settled. */
export interface Waiters {
  readonly followers: readonly Follower[];
  readonly orphans: readonly Ref[];
}

export interface Heads {
  readonly messages: readonly ClaimedMessage[];
  readonly waiters: Waiters;
}

/** Reads what stands first in the given lanes, which the caller has locked. */
export async function readHeads(
  sql: Sql,
  dialect: Dialect,
  lanes: readonly number[],
  limits: ClaimLimits,
): Promise<Heads> {
  const found = await readRefs(sql, dialect, lanes, limits);
  const { messages, orphans } = await readMessages(sql, dialect, found.refs);
  const holds = await holdsOf(sql, dialect, found, messages);
  if (holds.size === 0) return { messages, waiters: { followers: [], orphans } };
  const free: ClaimedMessage[] = [];
  const followers: Follower[] = [];
  for (const message of messages) {
    const behind = holderOf(message, holds);
    if (behind) followers.push({ message, behind });
    else free.push(message);
  }
  return { messages: free, waiters: { followers, orphans } };
}

/**
 * What the message must wait behind. A pending one goes behind the topic first: behind its key it would come before
 * earlier ones of the key that still wait with the topic.
 */
function holderOf(message: ClaimedMessage, holds: ReadonlySet<string>): Follower['behind'] | undefined {
  const isHeld = (by: Follower['behind']): boolean => holds.has(placeName(placeOf(message, by)));
  if (message.source === 'pending' && isHeld('topic-hold')) return 'topic-hold';
  if (message.source !== 'key-hold' && isHeld('key-hold')) return 'key-hold';
  return undefined;
}

/** The holds that may concern the messages, by name. */
async function holdsOf(
  sql: Sql,
  dialect: Dialect,
  { holds, crowded }: Refs,
  messages: readonly ClaimedMessage[],
): Promise<ReadonlySet<string>> {
  const names = new Set(holds.map(placeName));
  const unsure = messages.filter(({ lane }) => crowded.has(lane));
  const places = unsure.flatMap((message) => [placeOf(message, 'topic-hold'), placeOf(message, 'key-hold')]);
  for (const name of (await readHolds(sql, dialect, places)).keys()) names.add(name);
  return names;
}
