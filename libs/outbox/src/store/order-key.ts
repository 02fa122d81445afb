interface Keyed {
  readonly topic: string;
  readonly key: string | null;
  readonly messageId?: string;
}

/** What a message is held by. One without a key is held alone. */
export function holdKey({ key, messageId }: Keyed): string {
  return key ?? messageId ?? '';
}

/** The same for all messages that must keep their order, and for no others. */
export function orderKey(message: Keyed): string {
  return `${message.topic}\u0000${holdKey(message)}`;
}
