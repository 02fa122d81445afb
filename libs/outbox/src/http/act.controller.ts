import { Body, Controller, HttpCode, Inject, Post, Req } from '@nestjs/common';
import type { Operator } from '../operate/audit';
import type { ActResult, OutboxAdmin } from '../operate/outbox-admin';
import { type HttpRequest, type HttpSettings, operatorOf } from './http-options';
import { HTTP_ADMIN, HTTP_SETTINGS } from './http-tokens';
import { as, given, KeyRequest, MessagesRequest, PauseRequest, PurgeRequest, targetOf } from './requests';

/** Acts. Who acts comes from the request itself, never from what it says in its body. */
@Controller()
export class ActController {
  constructor(
    @Inject(HTTP_ADMIN) private readonly admin: OutboxAdmin,
    @Inject(HTTP_SETTINGS) private readonly settings: HttpSettings,
  ) {}

  @Post('messages/requeue')
  @HttpCode(200)
  async requeue(@Body(as(MessagesRequest)) body: MessagesRequest, @Req() request: HttpRequest): Promise<ActResult> {
    return this.admin.requeue(targetOf(body), this.operator(request, body));
  }

  @Post('messages/discard')
  @HttpCode(200)
  async discard(@Body(as(MessagesRequest)) body: MessagesRequest, @Req() request: HttpRequest): Promise<ActResult> {
    return this.admin.discard(targetOf(body), this.operator(request, body));
  }

  @Post('messages/replay')
  @HttpCode(200)
  async replay(@Body(as(MessagesRequest)) body: MessagesRequest, @Req() request: HttpRequest): Promise<ActResult> {
    return this.admin.replay(targetOf(body), this.operator(request, body));
  }

  @Post('keys/block')
  @HttpCode(200)
  async block(@Body(as(KeyRequest)) body: KeyRequest, @Req() request: HttpRequest): Promise<object> {
    await this.admin.block(body.topic, body.key, this.operator(request, body));
    return { done: true };
  }

  @Post('keys/release')
  @HttpCode(200)
  async release(@Body(as(KeyRequest)) body: KeyRequest, @Req() request: HttpRequest): Promise<object> {
    return { done: await this.admin.release(body.topic, body.key, this.operator(request, body)) };
  }

  @Post('pause')
  @HttpCode(200)
  async pause(@Body(as(PauseRequest)) body: PauseRequest, @Req() request: HttpRequest): Promise<object> {
    await this.admin.pause(this.operator(request, body), body.topic);
    return { done: true };
  }

  @Post('resume')
  @HttpCode(200)
  async resume(@Body(as(PauseRequest)) body: PauseRequest, @Req() request: HttpRequest): Promise<object> {
    await this.admin.resume(this.operator(request, body), body.topic);
    return { done: true };
  }

  @Post('purge')
  @HttpCode(200)
  async purge(@Body(as(PurgeRequest)) { reason, archive, ...ages }: PurgeRequest, @Req() request: HttpRequest): Promise<object> {
    return this.admin.purge(this.operator(request, { reason }), { ...given(ages), ...(archive === true ? { mode: 'archive' } : {}) });
  }

  private operator(request: HttpRequest, { reason }: { readonly reason: string }): Operator {
    return operatorOf(this.settings, request, reason);
  }
}
