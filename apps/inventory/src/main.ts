import { NestFactory } from '@nestjs/core';
import { createTopics } from '../../shop/src/create-topics.js';
import { start } from '../../shop/src/start.js';
import { AppModule } from './app.module.js';
import { inventoryEnvironment } from './environment.js';
import { kafkaServer } from './kafka-server.js';

await start(async () => {
  const environment = inventoryEnvironment(process.env);
  const app = await NestFactory.create(AppModule.of(environment));
  app.connectMicroservice(kafkaServer(environment.brokers));
  app.enableShutdownHooks();
  // HTTP first: while Kafka is away, the app is up, says so and waits.
  await app.listen(environment.port);
  await createTopics('inventory', environment.brokers);
  await app.startAllMicroservices();
});
