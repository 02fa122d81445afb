import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { Logger } from '@nestjs/common';
import { describe, expect, it, vi } from 'vitest';
import type { RelayEvents } from '../../libs/outbox/src/relay/relay-events';
import { DATABASES } from '../setup/databases';
import { ids, keyOfLane, message } from '../store/fixture';
import { until } from './fixture';
import { RelayStage } from './relay-stage';
import { acknowledged, refused, ScriptedPublishers, topicMissing } from './scripted-publisher';

const LANES = 8;

describe.each(DATABASES)('the relay on %s', (database) => {
  const stage = RelayStage.use(database, LANES);

  it('publishes everything once, each key in order, and marks it', async () => {
    const keys = Array.from({ length: 20 }, (_, i) => `k${i}`);
    for (let n = 0; n < 5; n++) await stage.f.add(...keys.map((key) => message({ key, payload: `${n}` })));
    const { publishers, relay } = stage.relays.start({ batchSize: 7, lanesPerClaim: 2 });
    await stage.drained();
    await until(() => publishers.published.length === 100 && relay.status().published === 100);
    expect(new Set(ids(publishers.published)).size).toBe(100);
    for (const key of keys) expect(publishers.published.filter((r) => r.key === key).map(({ value }) => value)).toEqual(['0', '1', '2', '3', '4']);
    await until(async () => (await stage.f.count('message', 'status = 1')) === 100);
    expect(await stage.f.count('settled')).toBe(0);
    expect(relay.status()).toMatchObject({ trouble: null, lost: 0, missingTopics: [] });
  });

  // J5
  it('keeps the order of a key whose first message is refused, and lets others pass', async () => {
    await stage.f.add(...['a1', 'a2', 'a3'].map((payload) => message({ key: 'a', payload })), message({ key: keyOfLane(1, LANES), payload: 'b' }));
    const publishers = new ScriptedPublishers();
    let refusals = 0;
    publishers.answer = (records) => records.map(({ value }) => (value === 'a1' && refusals++ < 3 ? refused : acknowledged));
    stage.relays.start({}, publishers);
    await stage.drained();
    expect(refusals).toBe(4);
    expect(publishers.published.filter(({ key }) => key === 'a').map(({ value }) => value)).toEqual(['a1', 'a2', 'a3']);
    expect(publishers.values[0]).toBe('b');
  });

  // J10
  it('tries a message exactly maxAttempts times, parks it with its error, and goes on', async () => {
    const [bad, next] = [message({ payload: 'bad' }), message({ payload: 'next' })];
    await stage.f.add(bad, next);
    const publishers = new ScriptedPublishers();
    publishers.answer = (records) => records.map(({ value }) => (value === 'bad' ? refused : acknowledged));
    stage.relays.start({ maxAttempts: 3 }, publishers);
    await stage.drained();
    expect(publishers.tried.filter(({ value }) => value === 'bad')).toHaveLength(3);
    const [row] = await stage.f.query(`SELECT status, retry_count, last_error FROM ${stage.f.tables.message} WHERE message_id = ?`, [bad.messageId]);
    expect(row).toEqual({ status: 2, retry_count: 3, last_error: 'MESSAGE_TOO_LARGE: too large' });
    expect(publishers.values).toEqual(['next']);
    expect(await stage.f.store.backlog(stage.f.dataSource)).toMatchObject({ dead: 1, pending: 0, held: 0 });
  });

  it('leaves a key blocked where the option says so for its topic', async () => {
    await stage.f.add(...['strict', 'loose'].flatMap((topic) => ['bad', 'next'].map((payload) => message({ topic, payload: `${topic} ${payload}` }))));
    const publishers = new ScriptedPublishers();
    publishers.answer = (records) => records.map(({ value }) => (value?.endsWith('bad') ? refused : acknowledged));
    stage.relays.start({ maxAttempts: 1, onExhausted: ({ topic }) => (topic === 'strict' ? 'block' : 'continue') }, publishers);
    await until(async () => (await stage.f.count('dead')) === 2 && (await stage.f.count('pending')) === 0);
    await until(() => publishers.values.length === 1);
    expect(publishers.values).toEqual(['loose next']);
    expect(await stage.f.count('held')).toBe(1);
    expect(await stage.f.count('hold', `state = 'blocked'`)).toBe(1);
  });

  // J7
  it('lets good messages pass although a whole batch of bad ones stands before them', async () => {
    await stage.f.add(...Array.from({ length: 30 }, (_, i) => message({ key: `bad${i}`, payload: 'bad' })), message({ payload: 'good' }));
    const publishers = new ScriptedPublishers();
    publishers.answer = (records) => records.map(({ value }) => (value === 'bad' ? refused : acknowledged));
    stage.relays.start({ batchSize: 5, maxAttempts: 2 }, publishers);
    await until(() => publishers.values.includes('good'));
    await until(async () => (await stage.f.count('dead')) === 30);
    expect(publishers.tried.filter(({ value }) => value === 'bad')).toHaveLength(60);
  });

  it('waits for a topic that does not exist, without an attempt, and starves no other', async () => {
    await stage.f.add(...Array.from({ length: 60 }, (_, i) => message({ topic: 'missing', key: `m${i % 7}`, payload: `${i}` })));
    await stage.f.add(...Array.from({ length: 20 }, (_, i) => message({ key: `k${i}`, payload: 'other' })));
    const publishers = new ScriptedPublishers();
    let exists = false;
    publishers.answer = (records) => records.map(({ topic }) => (topic === 'missing' && !exists ? topicMissing : acknowledged));
    const { relay } = stage.relays.start({ batchSize: 8 }, publishers);
    await until(() => publishers.values.length === 20 && relay.status().missingTopics.length === 1);
    await until(async () => (await stage.f.count('pending')) === 0);
    expect(await stage.f.count('hold')).toBeLessThanOrEqual(LANES);
    expect(await stage.f.count('message', 'retry_count > 0 OR last_error IS NOT NULL')).toBe(0);
    expect(relay.status().trouble).toBeNull();
    exists = true;
    await stage.drained();
    for (let k = 0; k < 7; k++) {
      const ofKey = publishers.published.filter(({ key }) => key === `m${k}`).map(({ value }) => Number(value));
      expect(ofKey).toEqual(Array.from({ length: 60 }, (_, i) => i).filter((i) => i % 7 === k));
    }
    expect(relay.status().missingTopics).toEqual([]);
    expect(await stage.f.count('hold')).toBe(0);
  });

  // J8
  it('looks less often when there has been nothing to send for a while', async () => {
    await stage.f.add(message());
    const { relay, publishers } = stage.relays.start({ concurrency: 1, pollInterval: 50, idlePollInterval: 60_000 }, undefined, 3_600_000);
    await until(() => publishers.published.length === 1 && relay.status().published === 1);
    const real = performance.now.bind(performance);
    let later = 0;
    vi.spyOn(performance, 'now').mockImplementation(() => real() + later);
    const looks = vi.spyOn(relay, 'wake');
    const pollAfter = (...times: number[]): number => {
      looks.mockClear();
      for (const passed of times) {
        later += passed;
        relay.poll();
      }
      return looks.mock.calls.length;
    };
    expect(pollAfter(50, 50, 50)).toBe(3);
    // The last look is less than a minute ago, then more, then less again.
    expect(pollAfter(40_000, 10_000, 10_000, 10_000, 40_000)).toBe(1);
    expect(pollAfter(20_000)).toBe(1);
  });

  it('parks a message whose row somebody has spoilt', async () => {
    await stage.f.add(message({ key: 'a', payload: 'spoilt' }), message({ key: 'a', payload: 'next' }), message({ key: 'b', payload: 'other' }));
    await stage.f.query(`UPDATE ${stage.f.tables.message} SET headers = 'oops' WHERE payload = 'spoilt'`);
    const { publishers } = stage.relays.start({ maxAttempts: 2 });
    await stage.drained();
    expect(publishers.values).toEqual(['other', 'next']);
    expect(await stage.f.count('dead')).toBe(1);
  });

  it('refuses a tombstone where the broker has none, and holds its key back as for any other', async () => {
    await stage.f.add(message({ key: 'a', payload: null }), message({ key: 'a', payload: 'next' }), message({ key: 'b', payload: 'other' }));
    const publishers = new ScriptedPublishers();
    Object.assign(publishers.factory, { capabilities: { tombstones: false } });
    stage.relays.start({ maxAttempts: 2 }, publishers);
    await stage.drained();
    expect(publishers.values).toEqual(['other', 'next']);
    const [dead] = await stage.f.query<{ last_error: string }>(`SELECT last_error FROM ${stage.f.tables.message} WHERE status = 2`);
    expect(dead?.last_error).toContain('NO_TOMBSTONES');
  });

  it('tells its listeners, and the diagnostics channels, what it does', async () => {
    const seen: string[] = [];
    const parkedInChannel: RelayEvents['parked'][] = [];
    const note = (event: unknown): void => {
      parkedInChannel.push(event as RelayEvents['parked']);
    };
    subscribe('nestjs-transactional-outbox:relay.parked', note);
    await stage.f.add(message({ key: 'good', payload: 'good' }), message({ key: 'bad', payload: 'bad' }));
    const publishers = new ScriptedPublishers();
    publishers.answer = (records) => records.map(({ value }) => (value === 'bad' ? refused : acknowledged));
    const { relay } = stage.relays.start({ maxAttempts: 2, concurrency: 1 }, publishers, 100_000);
    relay.on('claimed', ({ messages }) => seen.push(`claimed ${messages.length}`));
    relay.on('published', ({ outcomes }) => seen.push(`published ${outcomes.length}`));
    relay.on('settled', ({ sent }) => seen.push(`settled ${sent.map(({ payload }) => payload).join()}`));
    relay.on('held', ({ message: { payload }, reason }) => seen.push(`held ${payload} ${reason}`));
    relay.on('parked', ({ message: { payload }, error }) => seen.push(`parked ${payload} ${error}`));
    relay.on('parked', () => {
      throw new Error('a listener fails');
    });
    relay.on('claimed', () => seen.push('not this one'))();
    relay.wake();
    await until(() => seen.length >= 4);
    await until(async () => {
      relay.wake();
      return (await stage.f.count('dead')) === 1 && seen.includes('settled ');
    });
    unsubscribe('nestjs-transactional-outbox:relay.parked', note);
    expect(seen).toEqual([
      'claimed 2',
      'published 2',
      'settled good',
      'held bad refused',
      'claimed 1',
      'published 1',
      'settled ',
      'parked bad MESSAGE_TOO_LARGE: too large',
    ]);
    expect(parkedInChannel.map(({ message: { payload } }) => payload)).toEqual(['bad']);
  });

  // B4
  it('ends the running batch when it is stopped, and takes no other', async () => {
    await stage.f.add(message({ payload: 'first' }));
    const publishers = new ScriptedPublishers();
    const { reached, letGo } = publishers.hang();
    const { relay } = stage.relays.start({ concurrency: 1 }, publishers);
    await reached;
    await stage.f.add(message({ payload: 'second' }));
    relay.wake();
    const stopped = relay.stop();
    letGo();
    await stopped;
    expect(publishers.values).toEqual(['first']);
    expect(publishers.journal.at(-1)).toBe('close');
    expect(await stage.f.count('pending')).toBe(1);
    expect(relay.status().running).toBe(false);
  });

  // B7
  it('gives up a batch that does not end, and leaves it to the next start', async () => {
    vi.spyOn(Logger.prototype, 'warn').mockReturnValue();
    await stage.f.add(message({ payload: 'stuck' }));
    const publishers = new ScriptedPublishers();
    const { reached } = publishers.hang();
    const { relay } = stage.relays.start({ concurrency: 1, shutdownTimeout: 50 }, publishers);
    await reached;
    await relay.stop();
    expect(publishers.journal).toContain('close');
    expect(await stage.f.count('pending')).toBe(1);
    const again = stage.relays.start();
    await stage.drained();
    expect(again.publishers.values).toEqual(['stuck']);
  });

  it('can be started again, and deletes what it has sent where that is asked for', async () => {
    const { relay, publishers } = stage.relays.start({ settle: 'delete' });
    await relay.stop();
    relay.start();
    await stage.f.add(message({ payload: 'x' }));
    await stage.drained();
    expect(publishers.values).toEqual(['x']);
    await until(async () => (await stage.f.count('message')) === 0);
  });
});
