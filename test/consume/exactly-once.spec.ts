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

describe('messages that come several times, in any order, to members of which one is killed', () => {
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
    for (let i = 0; i < 3; i++) {
      members.push(forkMember());
    }
    const loaded = members.map((member) => said(member, 'loaded'));
    await kafka.connect();
    for (const database of SERVERS) {
      const app = await startApp(database, { entities: [Note, Effect] });
      apps.push(app);
      duties.push({ database: app.dataSource.options, topic: `${database}-${run}`, group: `${database}-${run}` });
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

    const [victim, survivor, replacement] = members as [ChildProcess, ChildProcess, ChildProcess];
    await Promise.all([join(victim), join(survivor)]);
    await until('the work has begun everywhere', async () => {
      const counts = await Promise.all(apps.map((app) => count(app, 'effect')));
      return counts.every((n) => n > MESSAGES / 8);
    });
    victim.kill('SIGKILL');
    await join(replacement);
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
