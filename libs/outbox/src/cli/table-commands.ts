import { writeFile } from 'node:fs/promises';
import { type Command, Option } from 'commander';
import type { RetentionRules } from '../operate/retention-options';
import type { Dialect } from '../store/dialect';
import { mysqlDialect } from '../store/mysql.dialect';
import { postgresDialect } from '../store/postgres.dialect';
import { sqliteDialect } from '../store/sqlite.dialect';
import { laneCount, type TableNames, tableNames } from '../store/tables';
import { type Source, tablesOf } from './data-source';
import { Failure } from './failure';
import { duration, wholeNumber } from './parse';
import { type Output, table } from './print';
import type { Run } from './run';

interface Reason {
  readonly reason: string;
  readonly by?: string;
}

const DIALECTS: Readonly<Record<string, (names: TableNames) => Dialect>> = {
  mysql: (names) => mysqlDialect('mysql', names),
  mariadb: (names) => mysqlDialect('mariadb', names),
  postgres: (names) => postgresDialect(names),
  sqlite: sqliteDialect,
};

/** Commands about the tables as a whole. */
export function tableCommands(program: Command, run: Run, output: Output): void {
  program.command('status').description('what waits, by topic; exit code 1 when something waits for an operator')
    .action(run(async ({ admin }, print) => {
      const stats = await admin.stats();
      const { topics, pending, held, dead, oldestAge, paused } = stats;
      const all = [`pending ${pending}, held ${held}, dead ${dead}; the oldest waits for ${oldestAge === null ? '-' : `${Math.round(oldestAge / 1000)} s`}`, ...(paused ? ['All relays are paused.'] : [])];
      const rows = topics.map((topic) => [topic.topic, topic.pending, topic.held, topic.dead, topic.blockedKeys, topic.paused ? 'yes' : 'no']);
      print(stats, [...all, ...(rows.length > 0 ? [table(['topic', 'pending', 'held', 'dead', 'blocked keys', 'paused'], rows)] : [])].join('\n'));
      if (dead > 0 || paused || topics.some((topic) => topic.blockedKeys > 0 || topic.paused)) throw new Failure('', 1);
    }));

  const age = (name: string, what: string): Option => new Option(`--${name} <age>`, what).argParser(duration);
  withReason(program.command('purge').description('take old rows away now'))
    .addOption(age('sent', 'sent messages older than this (default 7d)'))
    .addOption(age('dead', 'dead messages (default never)'))
    .addOption(age('consumed', 'what consumers remember (default 14d)'))
    .addOption(age('failures', 'failed attempts of consumers (default 14d)'))
    .addOption(age('audit', 'what operators have done (default 365d)'))
    .addOption(age('sequences', 'places of keys that no event has come for (default never)'))
    .addOption(age('history', 'archived messages (default never)'))
    .addOption(new Option('--archive', 'move messages to the history instead of deleting them').conflicts('partitions'))
    .option('--partitions', 'make partitions ahead and drop old ones, where the log is partitioned')
    .option('--batch-size <n>', 'rows of one transaction', wholeNumber)
    .action(run(async ({ admin, operator, progress }, print, { reason, by, archive, partitions, ...rules }: Reason & RetentionRules & { sent?: number; archive?: boolean; partitions?: boolean }) => {
      const onProgress = (purged: object): void => progress(describe(purged));
      const pass = await admin.purge(operator({ reason, by }), { ...rules, ...(partitions ? { mode: 'partition' as const } : archive ? { mode: 'archive' as const } : {}) }, { onProgress });
      print(pass, pass.outcome === 'busy' ? 'Another cleaner is at work.' : `purge: ${describe(pass.purged)}`);
      if (pass.outcome !== 'done') throw new Failure('', 1);
    }));

  for (const name of ['pause', 'resume'] as const) {
    withReason(program.command(`${name} [topic]`).description(`${name} all relays, or a topic, for all instances`))
      .action(run(async ({ admin, operator }, print, { reason, by }: Reason, topic: string | undefined) => {
        await admin[name](operator({ reason, by }), topic);
        print({ [name]: topic === undefined ? { relays: 'all' } : { topic } }, `${name}: ${topic === undefined ? 'all relays' : `topic ${topic}`}`);
      }));
  }
  for (const name of ['block', 'release'] as const) {
    withReason(program.command(`${name} <topic> <key>`).description(name === 'block' ? 'stop a key' : 'let a key go on'))
      .action(run(async ({ admin, operator }, print, { reason, by }: Reason, topic: string, key: string) => {
        const done = await admin[name](topic, key, operator({ reason, by }));
        print({ [name]: key, done: done ?? true }, done === false ? 'It was not stopped.' : `${name}: ${topic} ${key}`);
      }));
  }

  program.command('migration').description('the statements that make the tables, for those who do not use the migrations of TypeORM')
    .addOption(new Option('--dialect <name>', 'for which database').choices(Object.keys(DIALECTS)).makeOptionMandatory())
    .option('--lanes <n>', 'number of lanes', wholeNumber)
    .option('--partitioned', 'with a log that is partitioned by day')
    .option('--write <file>', 'into a file that is not there yet, instead of printing them')
    .action(async ({ dialect: name, lanes, partitioned, write }: { dialect: string; lanes?: number; partitioned?: boolean; write?: string }) => {
      const dialect = DIALECTS[name]?.(tableNames({ tables: tablesOf(program.opts<Source>()) }));
      if (!dialect) return;
      if (partitioned && !dialect.partitions) throw new Failure(`${name} has no partitions.`, 2);
      const statements = dialect.createTables(laneCount(lanes === undefined ? {} : { lanes }), partitioned);
      const sql = `${statements.join(';\n\n')};\n`;
      if (write === undefined) return output.out(sql);
      await writeFile(write, sql, { flag: 'wx' }).catch((cause: unknown) => {
        throw new Failure(`${write} cannot be written: ${cause instanceof Error ? cause.message : String(cause)}`, 1, { cause });
      });
    });
}

function withReason(command: Command): Command {
  return command.requiredOption('--reason <text>', 'why, for those who look later').option('--by <name>', 'who acts (default: the user of this machine)');
}

function describe(purged: object): string {
  return Object.entries(purged).map(([name, count]) => `${String(count)} ${name}`).join(', ');
}
