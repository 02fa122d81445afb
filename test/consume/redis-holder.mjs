// A process that claims a message by Redis and then hangs in its handler, to be killed there.
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { runnerImport } from 'vite';

const { module } = await runnerImport(fileURLToPath(new URL('../../libs/outbox/src/redis.ts', import.meta.url)), {
  configFile: false,
  logLevel: 'error',
  oxc: { decorator: { legacy: true, emitDecoratorMetadata: true } },
});
const [url, consumer, messageId, lease] = process.argv.slice(2);
const dedupe = module.redisDedupe({ client: new Redis(url), lease: Number(lease) });
await dedupe.run({ consumer, messageId, concurrentCopies: 'wait' }, async () => {
  process.send('in the handler');
  await new Promise(() => {});
});
