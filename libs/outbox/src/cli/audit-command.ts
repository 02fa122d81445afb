import type { Command } from 'commander';
import type { AuditFilter } from '../store/audit';
import { time, wholeNumber } from './parse';
import { table } from './print';
import type { Run } from './run';

interface Options extends AuditFilter {
  readonly before?: string;
  readonly limit?: number;
}

/** What operators have done. */
export function auditCommand(program: Command, run: Run): void {
  program.command('audit').description('what operators have done, newest first')
    .option('--act <act>', 'of this kind, such as requeue')
    .option('--by <name>', 'by this operator')
    .option('--message <id>', 'to this message, by its id in the log or its message id')
    .option('--from <time>', 'at this time or later', time)
    .option('--to <time>', 'before this time', time)
    .option('--before <id>', 'before this one: the next of an earlier page')
    .option('--limit <n>', 'at most so many', wholeNumber)
    .action(run(async ({ admin }, print, { before, limit, ...filter }: Options) => {
      const page = await admin.audit(filter, { ...(before === undefined ? {} : { before }), ...(limit === undefined ? {} : { limit }) });
      const rows = page.acts.map(({ id, beganAt, act, by, outcome, target, result, reason }) => [id, beganAt, act, by, outcome, JSON.stringify(target), JSON.stringify(result), reason]);
      print(page, `${table(['id', 'at', 'act', 'by', 'outcome', 'on', 'result', 'why'], rows)}${page.next === null ? '' : `\nMore with --before ${page.next}`}`);
    }));
}
