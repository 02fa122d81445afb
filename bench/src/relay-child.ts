import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { OutboxAdmin, Relay } from 'nestjs-transactional-outbox';
import { BenchModule, publisherOf } from './app.js';
import { now } from './clock.js';
import type { RelayConfig, RelayReport, RelayTask } from './relay-process.js';
import { median } from './statistics.js';

/** A relay in a process of its own, which begins and ends when it is told. */
const { database, brokers, client, lanes, relay: relayOptions, retention = false } = JSON.parse(process.env['BENCH_RELAY'] ?? '{}') as RelayConfig;
const module = BenchModule.of(database, { publisher: publisherOf(client, brokers), ...(lanes === undefined ? {} : { lanes }), relay: { ...relayOptions, enabled: false }, retention }, 2);
const app = await NestFactory.createApplicationContext(module, { logger: ['error', 'warn'], abortOnError: false });
const relay = app.get(Relay);
let polling: NodeJS.Timeout | undefined;
/** Since the start: the first claim and the last settlement, by the shared clock, and whether somebody counts. */
let begun: number | undefined;
let ended = 0;
let counting = false;
let claims: number[] = [];
/** Bytes of the process, looked at every second: it comes and goes with the garbage collector. */
let memory: number[] = [];
setInterval(() => memory.push(process.memoryUsage.rss()), 1000).unref();
/** Milliseconds of all batches, and the processor's. */
let stages = { claim: 0, publish: 0, settle: 0 };
let batches = 0;
let cpu = process.cpuUsage();

relay.on('claimed', ({ durationMs }) => {
  if (begun === undefined) cpu = process.cpuUsage();
  begun ??= now() - durationMs;
  claims.push(durationMs);
  stages.claim += durationMs;
});
relay.on('published', ({ durationMs }) => {
  stages.publish += durationMs;
});
relay.on('settled', ({ sent, durationMs }) => {
  stages.settle += durationMs;
  batches += 1;
  ended = now();
  if (counting && begun !== undefined) report({ type: 'settled', messages: sent.length, begun, at: ended });
});

/** A relay that got nothing to do has no stages. */
function counted(): RelayReport {
  const { user, system } = process.cpuUsage(cpu);
  const { claim, publish, settle } = stages;
  const each = Math.max(batches, 1);
  const milliseconds = begun === undefined ? Number.POSITIVE_INFINITY : ended - begun;
  return { type: 'counted', claimMs: claim / each, publishMs: publish / each, settleMs: settle / each, cores: (user + system) / 1000 / milliseconds };
}

process.on('message', (task: RelayTask) => void perform(task));
process.once('disconnect', () => process.exit());
report({ type: 'ready' });

async function perform(task: RelayTask): Promise<void> {
  switch (task.type) {
    case 'start':
      begun = undefined;
      stages = { claim: 0, publish: 0, settle: 0 };
      batches = 0;
      counting = true;
      relay.start();
      // As the module does it for a relay that is enabled.
      polling = setInterval(() => relay.poll(), relay.options.pollInterval);
      return;
    case 'stop':
      clearInterval(polling);
      await relay.stop();
      report({ type: 'stopped' });
      return;
    case 'count':
      counting = false;
      report(counted());
      return;
    case 'look':
      report({ type: 'seen', claims, rss: median([...memory, process.memoryUsage.rss()]), heap: heapInUse() });
      claims = [];
      memory = [];
      return;
    case 'purge':
      await app.get(OutboxAdmin).purge({ by: 'bench', reason: 'interference' }, { sent: 0, consumed: false, failures: false });
      report({ type: 'purged' });
      return;
    case 'end':
      await app.close();
      process.disconnect();
  }
}

/** What is left when the garbage is gone. */
function heapInUse(): number {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}

function report(message: RelayReport): void {
  // Whoever measured may be gone.
  if (process.connected) process.send?.(message);
}
