import { channel } from 'node:diagnostics_channel';
import type { LoggedMessage } from '../event/message';
import type { PublishOutcome } from '../publish/publisher';

/** The part of the loop that an error comes from; `publisher` is one that broke its contract. */
export type RelayStage = 'database' | 'broker' | 'publisher';

/** What a relay tells its listeners. Times are in milliseconds. */
export interface RelayEvents {
  /** Lanes were locked and what stands first in them was read. */
  readonly claimed: { readonly lanes: readonly number[]; readonly messages: readonly LoggedMessage[]; readonly durationMs: number };
  /** The broker has answered, or has not in time: one outcome for each message. */
  readonly published: {
    readonly messages: readonly LoggedMessage[];
    readonly outcomes: readonly PublishOutcome[];
    readonly durationMs: number;
  };
  /** The outcome of a batch was committed. */
  readonly settled: { readonly sent: readonly LoggedMessage[]; readonly durationMs: number };
  /** A message was refused, or its topic takes nothing, and its key waits for the next attempt. */
  readonly held: { readonly message: LoggedMessage; readonly reason: 'refused' | 'topic'; readonly error: string; readonly delayMs: number };
  /** A message was given up. */
  readonly parked: { readonly message: LoggedMessage; readonly error: string; readonly blocks: boolean };
  /** A claim was lost, or had grown too old to be published; its messages are sent by whoever has the lanes now. */
  readonly laneLost: { readonly lanes: readonly number[]; readonly messages: number; readonly cause: Error };
  /** Messages wait nowhere and were not sent: somebody has edited the tables. Ids of the log. */
  readonly lost: { readonly ids: readonly string[] };
  /** A part of the loop failed; it is tried again after a pause. */
  readonly failed: { readonly stage: RelayStage; readonly error: Error };
}

export type RelayEventName = keyof RelayEvents;
export type RelayListener<E extends RelayEventName> = (event: RelayEvents[E]) => void;

type AnyListener = (event: RelayEvents[RelayEventName]) => void;

const NAMES: readonly RelayEventName[] = ['claimed', 'published', 'settled', 'held', 'parked', 'laneLost', 'lost', 'failed'];

/** The same events for `node:diagnostics_channel`, as `nestjs-transactional-outbox:relay.<event>`. */
const CHANNELS = new Map(NAMES.map((name) => [name, channel(`nestjs-transactional-outbox:relay.${name}`)]));

/** Those who listen to one relay. What nobody listens to costs nothing. */
export class RelayListeners {
  private readonly listeners = new Map<RelayEventName, Set<AnyListener>>();

  constructor(private readonly onError: (error: unknown) => void) {}

  /** @returns what ends the listening */
  on<E extends RelayEventName>(event: E, listener: RelayListener<E>): () => void {
    const listeners = this.listeners.get(event) ?? new Set();
    this.listeners.set(event, listeners.add(listener as AnyListener));
    return () => {
      listeners.delete(listener as AnyListener);
    };
  }

  emit<E extends RelayEventName>(event: E, describe: () => RelayEvents[E]): void {
    const listeners = this.listeners.get(event);
    const subscribed = CHANNELS.get(event);
    if (!listeners?.size && !subscribed?.hasSubscribers) return;
    const value = describe();
    subscribed?.publish(value);
    for (const listener of listeners ?? []) {
      try {
        listener(value);
      } catch (error) {
        this.onError(error);
      }
    }
  }
}
