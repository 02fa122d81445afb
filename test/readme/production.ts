import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { outboxMigrations, OutboxModule } from 'nestjs-transactional-outbox';
import { kafkaPublisher } from 'nestjs-transactional-outbox/kafkajs';

@Module({
  imports: [
    TypeOrmModule.forRoot({
      type: 'mysql',
      url: process.env.DATABASE_URL ?? '',
      autoLoadEntities: true,
      migrations: [...outboxMigrations(), 'dist/migrations/*.js'],
    }),
    OutboxModule.forRoot({ publisher: kafkaPublisher({ clientId: 'orders', brokers: ['kafka:9092'] }) }),
  ],
})
export class ProductionModule {}
