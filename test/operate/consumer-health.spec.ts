import { Controller } from '@nestjs/common';
import { EventPattern } from '@nestjs/microservices';
import { IdempotentConsumer, Outbox, OutboxHealth, TransactionRunner } from 'nestjs-transactional-outbox';
import { expect, it } from 'vitest';
import { until } from '../relay/fixture';
import { startApp } from '../setup/app';
import { NoteWritten } from '../setup/notes';

// A10
it('a consumer whose every message fails does not look healthy, and does again when one went well', async () => {
  let broken = true;
  @Controller()
  class NotesController {
    @EventPattern<string>('notes')
    @IdempotentConsumer('notes', { retry: { attempts: 1 } })
    async handle(): Promise<void> {
      if (broken) throw new Error('the mail server is away');
    }
  }
  const { app, broker, close } = await startApp('sqlite', { controllers: [NotesController], outbox: { relay: {} } });
  const health = app.get(OutboxHealth);
  app.connectMicroservice({ strategy: broker.server({ groupId: 'notes' }) });
  await app.startAllMicroservices();
  const emit = (id: number) => app.get(TransactionRunner).run(async () => app.get(Outbox).emit(NoteWritten.of(id)));
  expect(await health.check()).toMatchObject({ status: 'up', consumers: [] });
  await emit(1);
  await until(async () => (await health.check()).consumers[0]?.deadLettered === 1);
  expect(await health.check()).toMatchObject({
    status: 'degraded',
    reasons: expect.arrayContaining([expect.stringMatching(/^notes has failed since .*: the mail server is away$/)]) as unknown,
    consumers: [{ consumer: 'notes', lastSuccessAt: null, failingSince: expect.any(Date) as unknown }],
  });
  broken = false;
  await emit(2);
  await until(async () => (await health.check()).consumers[0]?.failingSince === null);
  expect((await health.check()).reasons.filter((reason) => reason.startsWith('notes'))).toEqual([]);
  await close();
});
