import type { BeforeApplicationShutdown, OnApplicationBootstrap } from '@nestjs/common';
import type { SchedulerRegistry } from '@nestjs/schedule';
import type { Cleaner } from './cleaner';

/** Looks so often, in ms, whether a pass is due; and so long after its start a process begins the first. */
const LOOK = 60_000;

/** Runs the cleaner with the app. */
export class CleanerSchedule implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly interval: string;

  constructor(
    private readonly cleaner: Cleaner,
    private readonly enabled: boolean,
    private readonly registry: SchedulerRegistry,
    dataSource: string,
  ) {
    this.interval = dataSource === 'default' ? 'outbox-cleaner' : `outbox-cleaner-${dataSource}`;
  }

  onApplicationBootstrap(): void {
    if (!this.enabled) return;
    this.cleaner.begin();
    this.registry.addInterval(this.interval, setInterval(() => this.cleaner.poll(), Math.min(LOOK, this.cleaner.rules.interval)));
  }

  async beforeApplicationShutdown(): Promise<void> {
    // @nestjs/schedule clears its intervals in the same hook, before or after this one.
    if (this.registry.doesExist('interval', this.interval)) this.registry.deleteInterval(this.interval);
    await this.cleaner.stop();
  }
}
