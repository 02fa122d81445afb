/** Checked by the compiler alone: what must not compile stands under `@ts-expect-error`. */
import type { OutboxAdmin } from 'nestjs-transactional-outbox';

declare const admin: OutboxAdmin;
const who = { by: 'anna', reason: 'a test' };

/** All of this is right. */
export const right = [
  admin.requeue('1', who),
  admin.discard(['1', '2'], who, { onProgress: ({ done }) => void done }),
  admin.replay({ topic: 'orders', from: new Date(), limit: 10 }, who),
  admin.pause(who),
  admin.resume(who, 'orders'),
];

export const wrong = [
  // @ts-expect-error nobody says who and why
  admin.requeue('1'),
  // @ts-expect-error nobody says why
  admin.pause({ by: 'anna' }),
  // @ts-expect-error a filter needs a limit
  admin.requeue({ topic: 'orders' }, who),
  // @ts-expect-error there is no such filter
  admin.discard({ topics: 'orders', limit: 1 }, who),
  // @ts-expect-error there is no such state
  admin.find({ state: 'parked' }),
];
