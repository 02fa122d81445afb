import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Controller } from '@nestjs/common';
import { EventPattern, Payload } from '@nestjs/microservices';
import { Kafka, logLevel } from 'kafkajs';
import { type DeadLetter, DeadLetters, IdempotentConsumer, Outbox, TransactionRunner } from 'nestjs-transactional-outbox';
import { kafkaPublisher } from 'nestjs-transactional-outbox/kafkajs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ConsumerApp, startConsumers } from '../consume/consumer-app';
import { KafkaSide } from '../consume/kafka-side';
import { until } from '../consume/until';
import { SERVERS } from '../setup/databases';
import { BY } from './fixture';

const run = promisify(execFile);
const PROGRAM = fileURLToPath(new URL('../../libs/outbox/dist/cli/main.js', import.meta.url));

describe.each(SERVERS)('dead letters on %s', (database) => {
  const topic = `given-up-${randomUUID().slice(0, 8)}`;
  const letters = `${topic}.dlt`;
  const side = new KafkaSide();
  const client = new Kafka({ clientId: 'operator', brokers: side.brokers, logLevel: logLevel.NOTHING });
  const handled: unknown[] = [];
  let broken = true;
  let app: ConsumerApp;
  let dead: DeadLetters;

  @Controller()
  class GivenUpController {
    @EventPattern<string>(topic)
    @IdempotentConsumer('given-up', { retry: { attempts: 1 } })
    async handle(@Payload() payload: unknown): Promise<void> {
      if (broken) throw new Error('the stock service is away');
      handled.push(payload);
    }
  }

  beforeAll(async () => {
    await side.connect();
    await side.createTopics([topic, letters], 2);
    app = await startConsumers(database, {
      controllers: [GivenUpController],
      servers: [side.server(topic)],
      outbox: { publisher: kafkaPublisher({ clientId: topic, brokers: side.brokers }), relay: { pollInterval: 20 } },
    });
    dead = app.app.get(DeadLetters);
  });
  afterAll(async () => {
    await app?.close();
    await side.close();
  });

  it('are listed page by page, and those that are chosen come back to their consumer, once', async () => {
    const ids = Array.from({ length: 4 }, () => randomUUID());
    const headers = { event_type: 'order.created', correlation_id: 'c', mine: 'kept' };
    await side.send(topic, ...ids.map((id, i) => ({ key: `k${i}`, value: JSON.stringify({ i }), headers: { ...headers, id } })), { key: 'k', value: '{}', headers: { ...headers, id: 'not-a-uuid' } });
    // One that the outbox of this database has sent itself.
    const own = randomUUID();
    await app.app.get(TransactionRunner).run(async () => app.app.get(Outbox).emitRaw({ messageId: own, topic, type: 'order.created', key: 'own', payload: '{"own":true}' }));
    await app.reached('given-up', 'dead-lettered', 6);
    await until('all dead letters are on their topic', async () => (await side.read(letters)).length === 6);

    const first = await dead.list(client, letters, { limit: 4 });
    expect(first.letters).toHaveLength(4);
    const second = await dead.list(client, letters, { after: String(first.next) });
    expect(second.next).toBeNull();
    const all = [...first.letters, ...second.letters];
    expect(new Set(all.map(({ messageId }) => messageId))).toEqual(new Set([...ids, own, 'not-a-uuid']));
    expect(all.every(({ consumer, reason, attempts, origin }) => consumer === 'given-up' && reason === 'the stock service is away' && attempts === 1 && origin?.topic === topic)).toBe(true);

    broken = false;
    await until('the sweeper has marked its own', async () => (await app.count('outbox_message', `status = 1 AND message_id = '${own}'`)) === 1);
    const chosen = all.filter(({ messageId }) => messageId === ids[0] || messageId === own || messageId === 'not-a-uuid').map(({ partition, offset }) => ({ partition, offset }));
    const nowhere = { partition: 0, offset: '9999' };
    const result = await dead.replay(client, letters, [...chosen, nowhere], BY);
    expect(result).toMatchObject({ replayed: 2, notFound: [nowhere], skipped: [{ why: 'no-uuid' }] });
    await app.reached('given-up', 'handled', 2);
    expect(handled).toEqual(expect.arrayContaining([{ i: 0 }, { own: true }]));
    const copies = (await side.read(topic)).filter(({ headers: { id } }) => id === ids[0]);
    expect(copies).toHaveLength(2);
    expect(copies[1]?.value).toEqual(copies[0]?.value);
    expect(copies[1]?.key).toEqual(copies[0]?.key);
    expect(copies[1]?.headers).toMatchObject({ ...headers, id: ids[0] });
    expect(Object.keys(copies[1]?.headers ?? {}).filter((name) => name.startsWith('dlt_'))).toEqual([]);

    // What was handled since is a repeat.
    await until('the sweeper has marked them', async () => (await app.count('outbox_message', `topic = '${topic}' AND status = 1`)) === 2);
    expect(await dead.replay(client, letters, chosen, BY)).toMatchObject({ replayed: 2 });
    await app.reached('given-up', 'duplicate', 2);
    expect(handled).toHaveLength(2);
    // Nothing of the looking is left behind.
    const admin = client.admin();
    await admin.connect();
    expect((await admin.listGroups()).groups.filter(({ groupId }) => groupId.startsWith('outbox-look'))).toEqual([]);
    await admin.disconnect();
  });

  // The program as it is installed, once; the rest of it is tested in cli.spec.
  it.runIf(database === 'postgres')('are listed and replayed by npx outbox', async () => {
    broken = true;
    const id = randomUUID();
    await side.send(topic, { key: 'cli', value: '{"cli":true}', headers: { id, event_type: 'order.created' } });
    await app.reached('given-up', 'dead-lettered', 7);
    await until('its dead letter is on the topic', async () => (await side.read(letters)).length === 7);
    broken = false;
    const url = new URL(process.env[`OUTBOX_${database.toUpperCase()}_URL`] ?? '');
    url.pathname = `/${String(app.dataSource.options.database)}`;
    const outbox = (...args: string[]) => run('node', [PROGRAM, '--url', url.href, '--json', 'dead-letters', ...args, '--brokers', side.brokers.join(',')]);

    const listed = JSON.parse((await outbox('list', letters)).stdout) as { letters: DeadLetter[]; next: null };
    expect(listed.letters).toHaveLength(7);
    const { partition, offset } = listed.letters.find(({ messageId }) => messageId === id) ?? {};
    const replayed = await outbox('replay', letters, `${partition}@${offset}`, '--reason', 'stock service is mended', '--by', 'anna');
    expect(JSON.parse(replayed.stdout)).toEqual({ replayed: 1, notFound: [], skipped: [] });
    expect(replayed.stderr).toMatch(/replay dead letters.*anna.*stock service is mended/s);
    await until('its consumer has handled it', () => handled.some((payload) => (payload as { cli?: boolean }).cli === true));

    await expect(outbox('replay', letters, '0@9999', '--reason', 'x')).rejects.toMatchObject({ code: 1, stdout: expect.stringContaining('9999') as unknown });
    await expect(outbox('list', `${letters}.none`)).rejects.toMatchObject({ code: 2, stderr: expect.stringContaining(`${letters}.none`) as unknown });
  });

  it('must be asked for rightly', async () => {
    const invalid = { code: 'OUTBOX_OPERATION_INVALID' };
    await expect(dead.list(client, 'no topic')).rejects.toMatchObject(invalid);
    await expect(dead.list(client, letters, { after: 'x' })).rejects.toMatchObject(invalid);
    await expect(dead.replay(client, letters, [{ partition: 0, offset: 'x' }], BY)).rejects.toMatchObject(invalid);
    await expect(dead.replay(client, letters, [], { by: 'anna', reason: ' ' })).rejects.toMatchObject(invalid);
  });
});
