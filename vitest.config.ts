import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const source = (file: string) => fileURLToPath(new URL(`./libs/outbox/src/${file}`, import.meta.url));

/** Nest needs decorator metadata: constructor types are its injection tokens. */
const oxc = { decorator: { legacy: true, emitDecoratorMetadata: true } };

/** Tests run the library's source, so that what is tested is never an old build. */
const resolve = {
  alias: [
    { find: /^nestjs-transactional-outbox\/(.+)$/, replacement: source('$1.ts') },
    { find: /^nestjs-transactional-outbox$/, replacement: source('index.ts') },
  ],
};

export default defineConfig({
  test: {
    reporters: process.env.OUTBOX_TEST_REPORT ? ['default', 'json'] : ['default'],
    ...(process.env.OUTBOX_TEST_REPORT ? { outputFile: { json: process.env.OUTBOX_TEST_REPORT } } : {}),
    projects: [
      {
        oxc,
        resolve,
        test: { name: 'unit', include: ['libs/outbox/src/**/*.spec.ts'], setupFiles: ['reflect-metadata'] },
      },
      {
        oxc,
        resolve,
        test: {
          name: 'integration',
          include: ['test/**/*.spec.ts'],
          setupFiles: ['reflect-metadata'],
          globalSetup: ['test/setup/services.ts'],
          // Each file has databases, topics and servers of its own.
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
          // Real servers on a busy machine: what fails twice in a row is no accident. At home every failure counts.
          retry: process.env.CI ? 1 : 0,
          testTimeout: 60_000,
          hookTimeout: 120_000,
        },
      },
    ],
  },
});
