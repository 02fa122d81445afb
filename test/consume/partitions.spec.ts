import { randomInt, randomUUID } from 'node:crypto';
import { Controller } from '@nestjs/common';
import { EventPattern, Payload } from '@nestjs/microservices';
import { InjectRepository } from '@nestjs/typeorm';
import { EmitsEvent, IdempotentConsumer, Transactional } from 'nestjs-transactional-outbox';
import { Repository } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SERVERS } from '../setup/databases';
import { Note, NoteWritten } from '../setup/notes';
import { type ConsumerApp, drained, startConsumers } from './consumer-app';
import { KafkaSide } from './kafka-side';

const MESSAGES = 600;
const REPEATS = 60;

// A11
describe.each(SERVERS)('six partitions at once, and a pool of three, on %s', (database) => {
  const run = randomUUID().slice(0, 8);
  const [topic, group] = [`six-${run}`, `six-${run}`];
  const kafka = new KafkaSide();
  let app: ConsumerApp;

  @Controller()
  class NotesController {
    constructor(@InjectRepository(Note) private readonly notes: Repository<Note>) {}

    @EventPattern<string>(topic)
    @IdempotentConsumer('six')
    @Transactional()
    @EmitsEvent(NoteWritten, (id: number) => ({ id }))
    async write(@Payload() value: string): Promise<number> {
      await this.notes.insert({ id: Number(value) });
      return Number(value);
    }
  }

  const server = (groupId: string) => kafka.server(groupId, { run: { partitionsConsumedConcurrently: 6 } });

  beforeAll(async () => {
    await kafka.connect();
    await kafka.createTopics([topic], 6);
    app = await startConsumers(database, { controllers: [NotesController], servers: [server(group)], dataSource: { poolSize: 3 } });
  });
  afterAll(async () => {
    await app?.close();
    await kafka.close();
  });

  it('need one connection for each message', async () => {
    const numbers = [...Array.from({ length: MESSAGES }, (_, n) => n), ...Array.from({ length: REPEATS }, () => randomInt(MESSAGES))];
    // A repeat may lie in another partition, and so come at the same time.
    await kafka.send(topic, ...numbers.map((n, i) => ({ value: String(n), headers: { id: `m${n}` }, partition: i % 6 })));
    await drained(kafka, group, topic);
    expect(await app.count('note')).toBe(MESSAGES);
    expect(await app.count('outbox_message')).toBe(MESSAGES);
    expect(app.events.counts('six')).toMatchObject({ handled: MESSAGES, duplicate: REPEATS, failed: 0, 'dead-lettered': 0 });
  });

  // I6: as long as the rows are kept, which is longer by default than Kafka keeps messages.
  it('a replay of the topic repeats nothing', async () => {
    app.app.connectMicroservice(server(`replay-${run}`));
    await app.app.startAllMicroservices();
    await drained(kafka, `replay-${run}`, topic);
    expect(await app.count('note')).toBe(MESSAGES);
    expect(await app.count('outbox_message')).toBe(MESSAGES);
    expect(app.events.counts('six')).toMatchObject({ handled: MESSAGES, duplicate: MESSAGES + 2 * REPEATS });
  });
});
