import type { Source } from './claim';

interface Keyed {
  readonly topic: string;
  readonly key: string | null;
  readonly messageId: string;
}

/** What stands for the key where all messages of a topic in a lane are held. No message has an empty key. */
export const TOPIC_HOLD_KEY = '';

/** What a message is held by. One without a key is held alone. */
export function holdKey({ key, messageId }: Keyed): string {
  return key ?? messageId;
}

/** The same for all messages that must keep their order, and for no others. */
export function orderKey(message: Keyed): string {
  return `${message.topic}\u0000${holdKey(message)}`;
}

/** A row of the hold table, or the place of one. */
export interface HoldPlace {
  readonly lane: number;
  readonly topic: string;
  readonly key: string;
}

export function placeOf(message: Keyed & { readonly lane: number }, source: Exclude<Source, 'pending'>): HoldPlace {
  const { lane, topic } = message;
  return { lane, topic, key: source === 'topic-hold' ? TOPIC_HOLD_KEY : holdKey(message) };
}

export function placeName({ lane, topic, key }: HoldPlace): string {
  return `${lane}\u0000${topic}\u0000${key}`;
}
