import 'reflect-metadata';
import { loadavg } from 'node:os';
import { type Bench, readArguments, usage } from './arguments.js';
import { benchBacklog } from './backlog.js';
import { benchConsume } from './consume.js';
import { benchDrain } from './drain.js';
import { benchEnqueue } from './enqueue.js';
import { benchInterference } from './interference.js';
import { benchLatency } from './latency.js';
import { benchPartialIndex } from './partial-index.js';
import { benchSoak } from './soak.js';

/** Each bench measures a reference in the same run; its result is one JSON object. */
const BENCHES: Readonly<Record<string, Bench>> = {
  drain: benchDrain,
  latency: benchLatency,
  enqueue: benchEnqueue,
  consume: benchConsume,
  interference: benchInterference,
  backlog: benchBacklog,
  soak: benchSoak,
  'partial-index': benchPartialIndex,
};

function readOrExplain(): ReturnType<typeof readArguments> {
  try {
    return readArguments(process.argv.slice(2), Object.keys(BENCHES));
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\n${usage(Object.keys(BENCHES))}`);
    process.exit(2);
  }
}

const { name, options } = readOrExplain();
const { json, ...told } = options;
if (!json) console.log(`${name}: ${Object.entries(told).filter(([, value]) => value !== undefined).map(([option, value]) => `${option} ${String(value)}`).join(', ')}`);
const result = await BENCHES[name]?.(options);
const loadAfter = Math.round((loadavg()[0] ?? 0) * 100) / 100;
if (!json) for (const [figure, value] of Object.entries(result ?? {})) console.log(`  ${figure}: ${JSON.stringify(value)}`);
console.log(JSON.stringify({ bench: name, ...told, ...result, loadAfter }));
