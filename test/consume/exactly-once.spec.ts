import type { ChildProcess } from 'node:child_process';
import { randomInt, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startApp, type TestApp } from '../setup/app';
import { SERVERS } from '../setup/databases';
import { Note } from '../setup/notes';
import { KafkaSide } from './kafka-side';
import { Effect } from './member/effect.entity';
import { forkMember, said } from './member/fork-member';
import type { Duty } from './member/member';
import { until } from './until';

const MESSAGES = 240;
const PARTITIONS = 6;

describe.each([false, true])('messages that come several times, in any order, to members that are killed, in batches: %s', (isBatch) => {
  const run = randomUUID().slice(0, 8);
  const kafka = new KafkaSide();
  const apps: TestApp[] = [];
  const duties: Duty[] = [];
  const members: ChildProcess[] = [];

  /** Resolves when the process is a member of the groups and serves. */
  async function join(member: ChildProcess): Promise<void> {
    member.send(duties);
    await said(member, 'serving');
  }

  const count = async (app: TestApp, table: string, what = '*'): Promise<number> => {
    const rows = (await app.dataSource.query(`SELECT COUNT(${what}) AS n FROM ${table}`)) as { n: string | number }[];
    return Number(rows[0]?.n);
  };

  beforeAll(async () => {
    for (let i = 0; i < 4; i++) {
      members.push(forkMember());
    }
    const loaded = members.map((member) => said(member, 'loaded'));
    await kafka.connect();
    for (const database of SERVERS) {
      const app = await startApp(database, { entities: [Note, Effect] });
      apps.push(app);
      duties.push({ database: app.dataSource.options, topic: `${database}-${run}`, group: `${database}-${run}`, isBatch });
    }
    await kafka.createTopics(duties.map(({ topic }) => topic), PARTITIONS);
    await Promise.all(loaded);
  });
  afterAll(async () => {
    for (const member of members) member.kill('SIGKILL');
    for (const app of apps) await app.close();
    await kafka.close();
  });

  it('act once and emit once', async () => {
    const deliveries = Array.from({ length: MESSAGES }, (_, note) => Array.from({ length: randomInt(1, 4) }, () => note))
      .flat()
      .map((note) => ({ note, at: Math.random() }))
      .toSorted((a, b) => a.at - b.at)
      .map(({ note }) => ({ value: String(note), headers: { id: `m${note}` }, partition: randomInt(PARTITIONS) }));
    for (const { topic } of duties) await kafka.send(topic, ...deliveries);

    const [first, second, third, last] = members as [ChildProcess, ChildProcess, ChildProcess, ChildProcess];
    const handled = (share: number): Promise<void> =>
      until(`${share} of the messages are handled everywhere`, async () => {
        const counts = await Promise.all(apps.map((app) => count(app, 'effect')));
        return counts.every((n) => n > MESSAGES * share);
      });
    await Promise.all([join(first), join(second)]);
    await handled(1 / 8);
    first.kill('SIGKILL');
    await join(third);
    await handled(1 / 2);
    second.kill('SIGKILL');
    await join(last);
    for (const { group, topic } of duties) {
      await until(`${group} is through`, () => kafka.isDone(group, topic), 90_000);
    }

    for (const app of apps) {
      expect(await count(app, 'effect')).toBe(MESSAGES);
      expect(await count(app, 'effect', 'DISTINCT note')).toBe(MESSAGES);
      expect(await count(app, 'consumed_message')).toBe(MESSAGES);
      expect(await count(app, 'outbox_message')).toBe(MESSAGES);
      expect(await count(app, 'outbox_message', 'DISTINCT causation_id')).toBe(MESSAGES);
      expect(await count(app, 'outbox_message', 'DISTINCT payload')).toBe(MESSAGES);
    }
  }, 180_000);
});
