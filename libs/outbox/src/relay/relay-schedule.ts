import type { BeforeApplicationShutdown, OnApplicationBootstrap } from '@nestjs/common';
import type { SchedulerRegistry } from '@nestjs/schedule';
import type { Relay } from './relay';

/** Runs the relay with the app: from its bootstrap to its shutdown, looking at every poll interval. */
export class RelaySchedule implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly interval: string;

  constructor(
    private readonly relay: Relay,
    private readonly registry: SchedulerRegistry,
    dataSource: string,
  ) {
    this.interval = dataSource === 'default' ? 'outbox-relay' : `outbox-relay-${dataSource}`;
  }

  async onApplicationBootstrap(): Promise<void> {
    if (!this.relay.options.enabled) return;
    await this.relay.prepare();
    this.relay.start();
    this.registry.addInterval(
      this.interval,
      setInterval(() => this.relay.poll(), this.relay.options.pollInterval),
    );
  }

  async beforeApplicationShutdown(): Promise<void> {
    // @nestjs/schedule clears its intervals in the same hook, before or after this one.
    if (this.registry.doesExist('interval', this.interval)) this.registry.deleteInterval(this.interval);
    await this.relay.stop();
  }
}
