import { Redis } from 'ioredis';
import type { ReadRecord } from 'nestjs-transactional-outbox/publisher-acceptance';
import { afterAll, beforeAll } from 'vitest';
import { type OwnServer, startOwn } from '../services/index.mjs';

let server: OwnServer;

beforeAll(async () => {
  // What was acknowledged has to outlive a kill.
  server = await startOwn('redis', { settings: { appendonly: 'yes', appendfsync: 'always' } });
});
afterAll(() => server?.remove());

/** A Redis of our own, since it is stopped. */
export const redis = {
  get url(): string {
    return server.info.url;
  },
  kill: (signal: NodeJS.Signals) => server.kill(signal),
  restart: () => server.restart(),
};

export async function readStream(topic: string): Promise<ReadRecord[]> {
  const client = new Redis(redis.url);
  const entries = await client.xrange(topic, '-', '+');
  await client.quit();
  return entries.map(([id, flat]) => {
    const fields = new Map(flat.flatMap((name, n) => (n % 2 === 0 ? [[name, flat[n + 1] ?? ''] as const] : [])));
    return {
      partition: 0,
      offset: id,
      key: fields.get('key') ?? null,
      value: fields.get('value') ?? null,
      headers: JSON.parse(fields.get('headers') ?? '[]') as [string, string][],
      timestamp: Number(fields.get('timestamp')),
    };
  });
}
