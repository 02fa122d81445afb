import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { check, isSound } from './checker.js';
import type { DatabaseName } from './child-config.js';
import { FAULT_KINDS, type FaultKind, planFaults } from './plan.js';
import { runChaos } from './run.js';

const USAGE = `npm run chaos -- --db mysql|mariadb|postgres [options]

  --seconds 120      how long faults strike, about one a second
  --seed 1           draws faults and transactions
  --faults a,b       only these: ${FAULT_KINDS.join(', ')}
                     ("none": no faults)
  --rate 60          transactions per second
  --writers 2  --relays 3  --consumers 2
  --order commit     "none" turns the library's commit-order lock off
  --settle mark      "delete" has sent messages deleted from the log
  --keep             keeps logs and history, also of a sound run
  --json             nothing but the verdict on standard output

The last line is the verdict in JSON. The exit code is 1 when a promise was broken, 2 when the run itself failed.
`;

const { values } = parseArgs({
  options: {
    db: { type: 'string' },
    seconds: { type: 'string', default: '120' },
    seed: { type: 'string', default: '1' },
    faults: { type: 'string', default: FAULT_KINDS.join(',') },
    rate: { type: 'string', default: '60' },
    writers: { type: 'string', default: '2' },
    relays: { type: 'string', default: '3' },
    consumers: { type: 'string', default: '2' },
    order: { type: 'string', default: 'commit' },
    settle: { type: 'string', default: 'mark' },
    keep: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

const say = (line: string): void => {
  (values.json ? process.stderr : process.stdout).write(`${line}\n`);
};

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(2));

process.exitCode = await main().catch((error: unknown) => {
  console.error(error);
  return 2;
});

async function main(): Promise<number> {
  if (values.help) {
    process.stdout.write(USAGE);
    return 0;
  }
  const database = oneOf<DatabaseName>('--db', values.db ?? '', ['mysql', 'mariadb', 'postgres']);
  const order = oneOf('--order', values.order, ['commit', 'none'] as const);
  const settle = oneOf('--settle', values.settle, ['mark', 'delete'] as const);
  const seed = whole('--seed', values.seed);
  const seconds = whole('--seconds', values.seconds);
  const kinds = values.faults === 'none' ? [] : values.faults.split(',').map((kind) => oneOf<FaultKind>('--faults', kind, FAULT_KINDS));
  const folder = mkdtempSync(join(tmpdir(), `outbox-chaos-${database}-${seed}-`));

  const { history, crashes } = await runChaos({
    database,
    seed,
    seconds,
    faults: kinds.length === 0 ? [] : planFaults(seed, seconds, kinds),
    writers: whole('--writers', values.writers),
    relays: whole('--relays', values.relays),
    consumers: whole('--consumers', values.consumers),
    rate: whole('--rate', values.rate),
    order,
    settle,
    logFolder: folder,
    say,
  });
  const { verdict, findings } = check(history);
  for (const finding of findings.slice(0, 40)) say(finding);
  if (findings.length > 40) say(`… and ${findings.length - 40} more`);
  const sound = isSound(verdict);
  if (sound && crashes.length === 0 && !values.keep) {
    rmSync(folder, { recursive: true, force: true });
  } else {
    writeFileSync(join(folder, 'history.json'), JSON.stringify(history));
    writeFileSync(join(folder, 'findings.txt'), findings.join('\n'));
    say(`history and logs: ${folder}`);
  }
  process.stdout.write(`${JSON.stringify(verdict)}\n`);
  return sound ? 0 : 1;
}

function oneOf<T extends string>(option: string, value: string, allowed: readonly T[]): T {
  const found = allowed.find((one) => one === value);
  if (found === undefined) throw new Error(`${option} must be one of ${allowed.join(', ')}, not "${value}"\n\n${USAGE}`);
  return found;
}

function whole(option: string, value: string): number {
  const number = Number(value);
  if (!Number.isSafeInteger(number) || number < 0) throw new Error(`${option} must be a whole number, not "${value}"`);
  return number;
}
