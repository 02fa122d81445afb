import { Outbox, TransactionRunner } from 'nestjs-transactional-outbox';
import { prometheusMetrics } from 'nestjs-transactional-outbox/prometheus';
import { Gauge, register, Registry } from 'prom-client';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { OutboxMetrics } from '../../libs/outbox/src/observe/metrics/outbox-metrics';
import { startApp, type TestApp } from '../setup/app';
import { Scrape } from './scrape';

const apps: TestApp[] = [];

async function start(metrics: OutboxMetrics): Promise<TestApp> {
  const app = await startApp('sqlite', { outbox: { metrics } });
  apps.push(app);
  return app;
}
async function emit({ app }: TestApp): Promise<void> {
  await app.get(TransactionRunner).run(async () => app.get(Outbox).emitRaw({ topic: 'orders', type: 'made', payload: '{}' }));
}

describe('modules that are made again in one process', () => {
  afterEach(async () => {
    for (const app of apps.splice(0)) await app.close();
    register.clear();
  });

  it.each([['a registry that was given', new Registry()], ["prom-client's own", undefined]])('share %s: counters go on, gauges are those of the living', async (_, registry) => {
    const make = () => prometheusMetrics(registry ? { registry } : {});
    const scrape = () => Scrape.of(registry ?? register);
    const first = await start(make());
    await emit(first);
    expect(await scrape().then((text) => [text.sum('outbox_messages_emitted_total'), text.sum('outbox_messages_pending')])).toEqual([1, 1]);
    await apps.pop()?.close();
    expect((await scrape()).sum('outbox_messages_pending')).toBeUndefined();
    const both = [await start(make()), await start(make())];
    for (const app of both) await emit(app);
    const after = await scrape();
    expect([after.sum('outbox_messages_emitted_total'), after.sum('outbox_database_up')]).toEqual([3, 1]);
  });

  it('register themselves again after the registry was cleared', async () => {
    await emit(await start(prometheusMetrics()));
    register.clear();
    await emit(await start(prometheusMetrics()));
    expect((await Scrape.of(register)).sum('outbox_messages_emitted_total')).toBe(1);
  });

  it('share a registry with a copy that was loaded before them', async () => {
    const registry = new Registry();
    await emit(await start(prometheusMetrics({ registry })));
    vi.resetModules();
    const again = (await import('nestjs-transactional-outbox/prometheus')).prometheusMetrics;
    expect(again).not.toBe(prometheusMetrics);
    await emit(await start(again({ registry })));
    const scrape = await Scrape.of(registry);
    expect([scrape.sum('outbox_messages_emitted_total'), scrape.sum('outbox_database_up')]).toEqual([2, 1]);
  });

  it('do not take what somebody else has registered', () => {
    const registry = new Registry();
    registry.registerMetric(new Gauge({ name: 'outbox_messages_pending', help: 'Of another.', registers: [] }));
    expect(() => prometheusMetrics({ registry })).toThrow(expect.objectContaining({ code: 'OUTBOX_OPTIONS_INVALID' }));
    // And has registered nothing that would stand in the way afterwards.
    registry.removeSingleMetric('outbox_messages_pending');
    expect(() => prometheusMetrics({ registry })).not.toThrow();
  });
});
