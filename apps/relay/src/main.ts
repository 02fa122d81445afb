import { Logger } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { start } from '../../shop/src/start.js';
import { relayEnvironment } from './environment.js';
import { RelayModule } from './relay.module.js';

await start(async () => {
  const environment = relayEnvironment(process.env);
  const app = await NestFactory.createApplicationContext(RelayModule.of(environment));
  // To have been asked to stop is no failure: exit code 0, once the running batches are settled.
  app.enableShutdownHooks([], { useProcessExit: true });
  new Logger('RelayApp').log(`Relay started, publishing to ${environment.brokers.join(', ')}.`);
});
