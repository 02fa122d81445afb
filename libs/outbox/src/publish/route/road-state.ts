import type { Logger } from '@nestjs/common';
import type { RouteStatus } from '../publisher';

/** How one route is, by what all workers have met on it. */
export class RoadState {
  private trouble: RouteStatus['trouble'] = null;

  constructor(
    readonly name: string,
    private readonly logger: Logger,
  ) {}

  status(): RouteStatus {
    return { name: this.name, trouble: this.trouble };
  }

  begin(message: string): void {
    if (this.trouble === null) this.logger.error(`${this.name}: nothing can be sent: ${message}. Its messages wait; the other routes go on.`);
    this.trouble = { message, since: this.trouble?.since ?? new Date() };
  }

  over(): void {
    if (this.trouble === null) return;
    this.logger.log(`${this.name}: sending again; ${this.trouble.message}, since ${this.trouble.since.toISOString()}, is over.`);
    this.trouble = null;
  }
}
