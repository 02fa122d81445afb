import type { Logger } from '@nestjs/common';
import { ROUTE_AWAY, TOPIC_MISSING } from '../publish/outcome';
import type { PublishFailure } from '../publish/publisher';

export interface UnavailableTopic {
  readonly topic: string;
  readonly error: string;
}

/** Topics that take nothing, and why. Each is logged when it begins. */
export class WaitingTopics {
  private readonly failures = new Map<string, PublishFailure>();

  constructor(private readonly logger: Logger) {}

  /** Those that do not exist. */
  get missing(): string[] {
    return [...this.failures].filter(([, { code }]) => code === TOPIC_MISSING).map(([topic]) => topic);
  }

  /** Those that exist, or may. */
  get unavailable(): UnavailableTopic[] {
    return [...this.failures]
      .filter(([, { code }]) => code !== TOPIC_MISSING)
      .map(([topic, { code, message }]) => ({ topic, error: `${code}: ${message}` }));
  }

  begin(topic: string, failure: PublishFailure): void {
    const known = this.failures.get(topic);
    this.failures.set(topic, failure);
    if (known?.code === failure.code) return;
    if (failure.code === TOPIC_MISSING) {
      this.logger.error(`The topic ${topic} does not exist. Its messages wait until it does; others go on.`);
    } else if (failure.code !== ROUTE_AWAY) {
      // Of a route that is away, the route itself speaks, once for all its topics.
      this.logger.error(`The topic ${topic} takes nothing (${failure.code}: ${failure.message}). Its messages wait; others go on.`);
    }
  }

  over(topic: string): void {
    if (this.failures.size > 0) this.failures.delete(topic);
  }
}
