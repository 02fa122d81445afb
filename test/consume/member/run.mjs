// Loads the member from source, as the tests load the library.
import { fileURLToPath } from 'node:url';
import { runnerImport } from 'vite';

const path = (file) => fileURLToPath(new URL(file, import.meta.url));
const { module } = await runnerImport(path('./member.ts'), {
  configFile: false,
  logLevel: 'error',
  oxc: { decorator: { legacy: true, emitDecoratorMetadata: true } },
  resolve: {
    alias: [
      { find: /^nestjs-transactional-outbox\/(.+)$/, replacement: path('../../../libs/outbox/src/$1.ts') },
      { find: /^nestjs-transactional-outbox$/, replacement: path('../../../libs/outbox/src/index.ts') },
    ],
  },
});
process.once('message', async (duties) => {
  await module.serve(duties);
  process.send('serving');
});
process.send('loaded');
