import { NestFactory } from '@nestjs/core';
import { start } from '../../shop/src/start.js';
import { relayEnvironment } from './environment.js';
import { RelayModule } from './relay.module.js';

await start(async () => {
  const app = await NestFactory.createApplicationContext(RelayModule.of(relayEnvironment(process.env)));
  // To have been asked to stop is no failure: exit code 0, once the running batches are settled.
  app.enableShutdownHooks([], { useProcessExit: true });
});
