import { Logger } from '@nestjs/common';
import { describe, expect, it, vi } from 'vitest';
import { DATABASES } from '../setup/databases';
import { message } from '../store/fixture';
import { until } from './fixture';
import { RelayStage } from './relay-stage';
import { acknowledged, ScriptedPublishers, unanswered } from './scripted-publisher';

/** What was done besides connecting, which each worker does when it likes. */
const sends = ({ journal }: ScriptedPublishers): string[] => journal.filter((entry) => entry !== 'connect');

const LANES = 8;

describe.each(DATABASES)('a relay in trouble on %s', (database) => {
  const stage = RelayStage.use(database, LANES);

  it('writes nothing during an outage, opens no transaction, and is not a message nearer to dead', async () => {
    await stage.f.add(...Array.from({ length: 20 }, (_, i) => message({ key: `k${i}` })));
    const before = await stage.f.query(`SELECT * FROM ${stage.f.tables.message} ORDER BY id`);
    const publishers = new ScriptedPublishers();
    // It answers, and then no more: the first batches are sent into the outage.
    let away = false;
    publishers.answer = (records) => {
      away ||= publishers.published.length === 0;
      return records.map(() => (away ? unanswered : acknowledged));
    };
    publishers.connect = async () => {
      if (away) throw new Error('ECONNREFUSED');
    };
    const { relay } = stage.relays.start({ maxAttempts: 2 }, publishers);
    await until(() => publishers.journal.filter((entry) => entry === 'connect').length >= 6);
    const tries = publishers.journal.filter((entry) => entry === 'publish').length;
    expect(tries).toBeLessThanOrEqual(relay.options.concurrency * 2);
    expect(relay.status().trouble?.stage).toBe('broker');
    expect(await stage.f.query(`SELECT * FROM ${stage.f.tables.message} ORDER BY id`)).toEqual(before);
    expect(await stage.f.count('hold')).toBe(0);
    const session = await stage.f.session();
    const claim = await session.claim({ lanes: LANES, rows: 1000, bytes: 1e6 });
    expect(claim?.messages).toHaveLength(20);
    await session.release();
    publishers.answer = (records) => records.map(() => acknowledged);
    away = false;
    await stage.drained();
    await until(() => relay.status().trouble === null);
    // Once for each cause: no answer, then no connection.
    const told = vi.mocked(Logger.prototype.error).mock.calls.map(String).filter((line) => line.includes('broker'));
    expect(told).toHaveLength(new Set(told).size);
    expect(told.length).toBeLessThanOrEqual(2);
  });

  it('does not call it trouble with the database when a publisher breaks its contract', async () => {
    await stage.f.add(message({ payload: 'x' }));
    const publishers = new ScriptedPublishers();
    const { answer } = publishers;
    let faults = 0;
    publishers.answer = (records) => {
      if (faults++ < 2) throw new TypeError('a bug');
      return answer(records);
    };
    const { relay } = stage.relays.start({}, publishers);
    const stages: string[] = [];
    relay.on('failed', ({ stage }) => stages.push(stage));
    await stage.drained();
    expect(new Set(stages)).toEqual(new Set(['publisher']));
    await until(() => relay.status().trouble === null);
    // Each faulty publisher was closed before the message was sent again.
    expect(sends(publishers).join(' ')).toMatch(/^(create )*(publish close (create )*){2}publish published/);
  });

  it('keeps no lane while it waits for a broken publisher', async () => {
    await stage.f.add(message());
    const publishers = new ScriptedPublishers();
    publishers.answer = () => {
      throw new TypeError('a bug');
    };
    const { relay } = stage.relays.start({ concurrency: 1, retryDelay: 60_000, maxRetryDelay: 60_000 }, publishers);
    await until(() => relay.status().trouble?.stage === 'publisher');
    const session = await stage.f.session();
    expect((await session.claim({ lanes: LANES, rows: 10, bytes: 1e6 }))?.messages).toHaveLength(1);
    await session.release();
  });

  it('closes a publisher that hangs before it sends again', async () => {
    await stage.f.add(message({ payload: 'x' }));
    const publishers = new ScriptedPublishers();
    const { reached } = publishers.hang();
    stage.relays.start({ publishTimeout: 50 }, publishers);
    await reached;
    await stage.drained();
    expect(sends(publishers).filter((entry) => entry !== 'create').slice(0, 3)).toEqual(['publish', 'close', 'publish']);
  });

  it('does not publish what it claimed too long ago: others may have its lanes by the time of the answer', async () => {
    const { relay, publishers } = stage.relays.start({ concurrency: 1, publishTimeout: 500, sessionTimeout: 2500 });
    const lost: number[] = [];
    relay.on('laneLost', ({ messages }) => lost.push(messages));
    // A process that stands still between its claim and its send.
    const end = relay.on('claimed', () => {
      end();
      for (const begun = performance.now(); performance.now() - begun < 1100; );
    });
    await stage.f.add(message());
    await stage.drained();
    expect(lost).toEqual([1]);
    expect(publishers.tried).toHaveLength(1);
  });
});
