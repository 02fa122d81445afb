import { randomUUID } from 'node:crypto';
import { publisherAcceptance } from 'nestjs-transactional-outbox/publisher-acceptance';
import { describe, it } from 'vitest';
import { redisStreamPublisher } from './own-publisher';
import { readStream, redis } from './redis-streams';

describe('my publisher', { timeout: 60_000 }, () => {
  const cases = publisherAcceptance({
    create: () => redisStreamPublisher(redis.url)(),
    createTopic: async () => `topic-${randomUUID()}`,
    read: readStream, // what is on the topic: key, value, headers, timestamp, in the broker's order
    outage: { start: () => redis.kill('SIGKILL'), end: () => redis.restart() },
    silence: { start: () => redis.kill('SIGSTOP'), end: () => redis.kill('SIGCONT') },
  });
  for (const { name, skipped, run } of cases) {
    it(name, async ({ skip }) => {
      if (skipped !== null) skip(skipped);
      await run();
    });
  }
});
