import { type CanActivate, type ExecutionContext, Injectable, UnauthorizedException } from '@nestjs/common';
import type { AbstractHttpAdapter } from '@nestjs/core';
import { type HttpRequest, OutboxHttpModule, type OutboxHttpOptions } from 'nestjs-transactional-outbox/http';
import { startApp, type TestApp, type TestAppOptions } from '../setup/app';
import type { DatabaseName } from '../setup/databases';
import { Note, Notes } from '../setup/notes';

/** Knows who comes by the header `x-user`; a guest may look only. */
@Injectable()
export class UserGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<HttpRequest>();
    const { 'x-user': user } = request.headers;
    if (user === undefined) throw new UnauthorizedException();
    return user !== 'guest' || request.method === 'GET';
  }
}

export const GUARDED: OutboxHttpOptions = {
  guard: UserGuard,
  actor: ({ headers }) => String(headers['x-user']),
  canReadContent: ({ headers }) => headers['x-user'] === 'anna',
};

export type Platform = 'express' | 'fastify';

/** Not among the packages of the repository: the tests on it run where it is installed. */
export const fastify = await import('@nestjs/platform-fastify' as string).then(
  ({ FastifyAdapter }: { FastifyAdapter: new () => AbstractHttpAdapter }) => () => new FastifyAdapter(),
  () => undefined,
);

/** Notes, the outbox, and what operates it over HTTP. */
export async function startHttp(database: DatabaseName, http: OutboxHttpOptions = GUARDED, platform: Platform = 'express', more: TestAppOptions = {}): Promise<TestApp & { readonly notes: Notes }> {
  const adapter = platform === 'fastify' ? fastify?.() : undefined;
  const test = await startApp(database, {
    entities: [Note],
    ...more,
    providers: [Notes, ...(more.providers ?? [])],
    imports: [OutboxHttpModule.forRoot(http), ...(more.imports ?? [])],
    ...(adapter ? { adapter } : {}),
  });
  if (adapter) await (test.app.getHttpAdapter().getInstance() as { ready(): PromiseLike<unknown> }).ready();
  return { ...test, notes: test.app.get(Notes) };
}
