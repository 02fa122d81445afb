/** Checked by the compiler alone: what must not compile stands under `@ts-expect-error`. */
import type { CanActivate } from '@nestjs/common';
import { OutboxHttpModule } from 'nestjs-transactional-outbox/http';
import type { Request } from 'express';

declare const guard: CanActivate;

/** All of this is right. */
export const right = [
  OutboxHttpModule.forRoot({ guard, actor: ({ user }) => String(user) }),
  OutboxHttpModule.forRoot({ guard: [guard], actor: (request: Request) => request.hostname, canReadContent: async () => true }),
  OutboxHttpModule.forRoot({ allowAnonymous: true, path: 'internal/outbox' }),
];

export const wrong = [
  // @ts-expect-error nobody guards it
  OutboxHttpModule.forRoot({}),
  // @ts-expect-error nobody says who acts
  OutboxHttpModule.forRoot({ guard }),
  // @ts-expect-error it is guarded, or it is not
  OutboxHttpModule.forRoot({ guard, actor: () => 'x', allowAnonymous: true }),
  // @ts-expect-error there is no such option
  OutboxHttpModule.forRoot({ guard, actor: () => 'x', guards: [] }),
];
