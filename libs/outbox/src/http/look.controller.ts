import { Controller, ForbiddenException, Get, Inject, NotFoundException, Param, Query, Req } from '@nestjs/common';
import type { OutboxAdmin } from '../operate/outbox-admin';
import type { HttpRequest, HttpSettings } from './http-options';
import { HTTP_ADMIN, HTTP_SETTINGS } from './http-tokens';
import { openApi } from './open-api';
import { as, AuditRequest, auditFilterOf, filterOf, FindRequest, given, QueueRequest, ShowRequest } from './requests';

/** Looks; changes nothing. */
@Controller()
export class LookController {
  constructor(
    @Inject(HTTP_ADMIN) private readonly admin: OutboxAdmin,
    @Inject(HTTP_SETTINGS) private readonly settings: HttpSettings,
  ) {}

  @Get('me')
  async me(@Req() request: HttpRequest): Promise<object> {
    return { by: this.settings.actor(request), canReadContent: await this.settings.canReadContent(request) };
  }

  @Get('stats')
  async stats(): Promise<object> {
    return this.admin.stats();
  }

  @Get('queue')
  async queue(@Query(as(QueueRequest)) { since }: QueueRequest): Promise<object> {
    return this.admin.queue(since);
  }

  @Get('messages')
  async find(@Query(as(FindRequest)) { after, limit, ...filter }: FindRequest): Promise<object> {
    return this.admin.find(filterOf(filter), given({ after, limit }));
  }

  @Get('messages/:id')
  async show(@Param('id') id: string, @Query(as(ShowRequest)) { content }: ShowRequest, @Req() request: HttpRequest): Promise<object> {
    const wanted = content === 'true';
    if (wanted && !(await this.settings.canReadContent(request))) throw new ForbiddenException('You may not read what messages say.');
    const message = await this.admin.show(id, { content: wanted });
    if (!message) throw new NotFoundException('This message is not in the log.');
    return message;
  }

  @Get('audit')
  async audit(@Query(as(AuditRequest)) { before, limit, ...filter }: AuditRequest): Promise<object> {
    return this.admin.audit(auditFilterOf(filter), given({ before, limit }));
  }

  @Get('openapi.json')
  description(): object {
    return openApi({ deadLetters: this.settings.kafka !== undefined });
  }
}
