import type { Command } from 'commander';
import type { Target } from '../operate/act-batches';
import type { Operator } from '../operate/audit';
import type { ActOptions, ActResult, OutboxAdmin } from '../operate/outbox-admin';
import type { MessageFilter } from '../store/look';
import { Failure } from './failure';
import { time, wholeNumber } from './parse';
import { table } from './print';
import type { Run } from './run';

interface FilterOptions extends MessageFilter {
  readonly limit?: number;
  readonly after?: string;
}

/** Commands about messages of the log. */
export function messageCommands(program: Command, run: Run): void {
  withFilter(program.command('list').description('messages, in the order of the log'))
    .option('--after <id>', 'behind this id: the next of an earlier page')
    .action(run(async ({ admin }, print, { after, limit, ...filter }: FilterOptions) => {
      const page = await admin.find(filter, { ...(after === undefined ? {} : { after }), ...(limit === undefined ? {} : { limit }) });
      const rows = page.messages.map(({ id, state, topic, key, type, attempts, createdAt, messageId, lastError }) => [id, state, topic, key, type, attempts, createdAt, messageId, lastError]);
      print(page, `${table(['id', 'state', 'topic', 'key', 'type', 'attempts', 'created', 'message id', 'last error'], rows)}${page.next === null ? '' : `\nMore with --after ${page.next}`}`);
    }));

  program.command('show <id>').description('one message, by its id in the log or its message id')
    .option('--content', 'with payload and headers')
    .action(run(async ({ admin }, print, { content = false }: { content?: boolean }, id: string) => {
      const message = await admin.show(id, { content });
      if (!message) throw new Failure(`There is no message ${id}.`, 1);
      print(message, table(['field', 'value'], Object.entries(message)));
    }));

  act(program, run, 'requeue', 'have dead (or discarded) messages sent again', (admin) => (...args) => admin.requeue(...args));
  act(program, run, 'discard', 'decide that dead, held or pending messages are not sent', (admin) => (...args) => admin.discard(...args));
  act(program, run, 'replay', 'send messages once more that were sent', (admin) => (...args) => admin.replay(...args));
}

type Act = (target: Target, operator: Operator, options: ActOptions) => Promise<ActResult>;

function act(program: Command, run: Run, name: string, description: string, of: (admin: OutboxAdmin) => Act): void {
  withFilter(program.command(`${name} [ids...]`).description(`${description}: by ids, or by a filter and --limit`))
    .requiredOption('--reason <text>', 'why, for those who look later')
    .option('--by <name>', 'who acts (default: the user of this machine)')
    .action(run(async ({ admin, operator, progress }, print, { limit, ...options }: FilterOptions & { reason: string; by?: string }, ids: readonly string[]) => {
      const { reason, by, ...filter } = options;
      const target = targetOf(ids, filter, limit);
      const result = await of(admin)(target, operator({ reason, by }), {
        onProgress: ({ done, notFound, skipped }) => progress(`${done} done`, (done + notFound.length + skipped.length) / (limit ?? ids.length)),
      });
      const rest = [...result.notFound.map((id) => `not found: ${id}`), ...result.skipped.map(({ id, state }) => `skipped: ${id} is ${state}`)];
      print(result, [`${name}: ${result.done} done`, ...rest].join('\n'));
      if (result.notFound.length > 0) throw new Failure('', 1);
    }));
}

function targetOf(ids: readonly string[], filter: MessageFilter, limit: number | undefined): Target {
  if (ids.length > 0) {
    if (Object.keys(filter).length > 0 || limit !== undefined) throw new Failure('Give ids or a filter, not both.', 2);
    return ids;
  }
  if (limit === undefined) throw new Failure('Give ids, or a filter with --limit.', 2);
  return { ...filter, limit };
}

function withFilter(command: Command): Command {
  return command
    .option('--topic <topic>', 'of this topic')
    .option('--key <key>', 'of this key')
    .option('--type <type>', 'of this event type')
    .option('--state <state>', 'pending, held, dead, sent, discarded or lost')
    .option('--from <time>', 'created at this time or later', time)
    .option('--to <time>', 'created before this time', time)
    .option('--limit <n>', 'at most so many', wholeNumber);
}
