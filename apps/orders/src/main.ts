import { NestFactory } from '@nestjs/core';
import { start } from '../../shop/src/start.js';
import { AppModule } from './app.module.js';
import { ordersEnvironment } from './environment.js';

await start(async () => {
  const environment = ordersEnvironment(process.env);
  const app = await NestFactory.create(AppModule.of(environment));
  app.enableShutdownHooks();
  await app.listen(environment.port);
});
