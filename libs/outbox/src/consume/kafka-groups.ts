import { reasonOf } from './reason-of';

/** A group that this process has been in, and is not now: nothing of its topics is consumed here. */
export interface LostGroup {
  readonly groupId: string;
  readonly since: Date;
  readonly error: string;
  /** Whether the Kafka client tries to get back; else only a restart of the app helps. */
  readonly isComingBack: boolean;
}

/** What is needed of a consumer of kafkajs. */
interface KafkaConsumer {
  readonly events: { readonly CRASH: string; readonly GROUP_JOIN: string };
  on(event: string, listener: (event: { readonly payload: CrashPayload }) => void): unknown;
}

interface CrashPayload {
  readonly error: unknown;
  readonly groupId: string;
  readonly restart: boolean;
}

/** Follows the Kafka consumers that have brought a message: a crash of one leaves the process up, and says nothing. */
export class KafkaGroups {
  private readonly followed = new WeakSet<object>();
  private readonly lost = new Map<object, LostGroup>();

  follow(consumer: object | undefined): void {
    if (!consumer || this.followed.has(consumer) || !isKafkaConsumer(consumer)) return;
    this.followed.add(consumer);
    consumer.on(consumer.events.CRASH, ({ payload: { error, groupId, restart } }) => {
      const since = this.lost.get(consumer)?.since ?? new Date();
      this.lost.set(consumer, { groupId, since, error: reasonOf(error), isComingBack: restart });
    });
    consumer.on(consumer.events.GROUP_JOIN, () => this.lost.delete(consumer));
  }

  all(): readonly LostGroup[] {
    return [...this.lost.values()];
  }
}

function isKafkaConsumer(consumer: object): consumer is KafkaConsumer {
  return 'on' in consumer && typeof consumer.on === 'function' && 'events' in consumer && typeof consumer.events === 'object';
}
