import { Controller, Get, HttpStatus, Res } from '@nestjs/common';
import type { Response } from 'express';
import { OutboxHealth, type OutboxHealthReport } from 'nestjs-transactional-outbox';

@Controller('health')
export class HealthController {
  constructor(private readonly health: OutboxHealth) {}

  /** A degraded app is still of use: orders are taken and their events wait. So only `down` is an error. */
  @Get()
  async check(@Res({ passthrough: true }) response: Response): Promise<OutboxHealthReport> {
    const report = await this.health.check();
    response.status(report.status === 'down' ? HttpStatus.SERVICE_UNAVAILABLE : HttpStatus.OK);
    return report;
  }
}
