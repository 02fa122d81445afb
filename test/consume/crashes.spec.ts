import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startApp, type TestApp } from '../setup/app';
import { SERVERS } from '../setup/databases';
import { Note } from '../setup/notes';
import { KafkaSide } from './kafka-side';
import { Effect } from './member/effect.entity';
import { forkMember, said } from './member/fork-member';
import type { Duty } from './member/member';
import { until } from './until';

describe.each(SERVERS)('a process that consumes, on %s', (database) => {
  const run = randomUUID().slice(0, 8);
  const kafka = new KafkaSide();
  const members: ChildProcess[] = [];
  let app: TestApp;

  const count = async (table: string, where: string): Promise<number> => {
    const rows = (await app.dataSource.query(`SELECT COUNT(*) AS n FROM ${table} WHERE ${where}`)) as { n: string | number }[];
    return Number(rows[0]?.n);
  };
  async function serve(duty: Duty): Promise<ChildProcess> {
    const member = forkMember();
    members.push(member);
    await said(member, 'loaded');
    member.send([duty]);
    return member;
  }
  async function duty(name: string): Promise<Duty> {
    const topic = `${name}-${database}-${run}`;
    await kafka.createTopics([topic]);
    return { database: app.dataSource.options, topic, group: topic };
  }
  const isThrough = ({ group, topic }: Duty): Promise<void> =>
    until(`${group} is through`, () => kafka.isDone(group, topic), 90_000);

  beforeAll(async () => {
    await kafka.connect();
    app = await startApp(database, { entities: [Note, Effect] });
  });
  afterAll(async () => {
    for (const member of members) member.kill('SIGKILL');
    await app?.close();
    await kafka.close();
  });

  // H3
  it('is told to end during a handler of three seconds: what it does is whole, and the next one goes on', async () => {
    const work = { ...(await duty('ending')), work: 3000 };
    await kafka.send(work.topic, ...[1, 2].map((n) => ({ value: String(n), headers: { id: `e${n}` } })));
    const first = await serve(work);
    await said(first, 'working');
    first.kill('SIGTERM');
    await once(first, 'exit');
    const handled = await count('effect', 'note IN (1, 2)');
    expect(await count('consumed_message', `message_id IN ('e1', 'e2')`)).toBe(handled);
    expect(handled).toBeLessThan(2);
    await serve({ ...work, work: 1 });
    await isThrough(work);
    for (const n of [1, 2]) {
      expect(await count('effect', `note = ${n}`)).toBe(1);
      expect(await count('outbox_message', `causation_id = 'e${n}'`)).toBe(1);
    }
  }, 180_000);

  // I4
  it('dies after the commit and before Kafka knows: three deliveries make one effect, one row and one event', async () => {
    const dying = { ...(await duty('dying')), diesAfterCommit: true };
    const copy = { value: '7', headers: { id: 'd7' } };
    await kafka.send(dying.topic, copy, copy);
    const first = await serve(dying);
    await once(first, 'exit');
    expect(await count('consumed_message', `message_id = 'd7'`)).toBe(1);
    expect(await kafka.isDone(dying.group, dying.topic)).toBe(false);
    await kafka.send(dying.topic, copy);
    await serve({ ...dying, diesAfterCommit: false });
    await isThrough(dying);
    expect(await count('effect', 'note = 7')).toBe(1);
    expect(await count('consumed_message', `message_id = 'd7'`)).toBe(1);
    expect(await count('outbox_message', `causation_id = 'd7'`)).toBe(1);
  }, 180_000);
});
