import { Command, CommanderError, Option } from 'commander';
import { OperationInvalidError, OutboxOptionsError } from '../errors';
import { auditCommand } from './audit-command';
import { deadLetterCommands } from './dead-letter-commands';
import type { Source } from './data-source';
import { doctorCommand, openPatient } from './doctor-command';
import { Failure } from './failure';
import { messageCommands } from './message-commands';
import { openOperator } from './operator';
import { oneLine, type Output, printable } from './print';
import { relayCommand } from './relay-command';
import { runner } from './run';
import { tableCommands } from './table-commands';

/**
 * Runs one command of `npx outbox`.
 *
 * @param args what stands behind the name of the program
 * @returns the exit code: 0 well, 1 something was found wrong or could not be done, 2 wrong use
 */
export async function runCommand(args: readonly string[], { out, err, rewrite }: Output): Promise<number> {
  const output: Output = {
    out: (text) => out(printable(text)),
    err: (text) => err(printable(text)),
    rewrite: rewrite && ((text) => rewrite(oneLine(text))),
  };
  const program = new Command('outbox')
    .description('Looks into an outbox, repairs it, and runs its relay.')
    .option('--data-source <file>', 'a built file that exports the data source of TypeORM, such as dist/ormconfig.js')
    .addOption(new Option('--url <url>', 'mysql:, mariadb:, postgres: or sqlite: address of the database').env('DATABASE_URL'))
    .option('--tables <json>', 'other names of the tables, as in the options of the module')
    .option('--json', 'results as JSON, for programs');
  program.exitOverride().configureOutput({ writeOut: (text) => output.out(text.trimEnd()), writeErr: (text) => output.err(text.trimEnd()) });
  const settings = (): Source & { json?: boolean } => {
    const { url, ...given } = program.opts<Source & { json?: boolean }>();
    // What is said by hand counts more than the environment.
    const isAside = given.dataSource !== undefined && program.getOptionValueSource('url') === 'env';
    return isAside || url === undefined ? given : { ...given, url };
  };
  const run = runner(openOperator, settings, output);
  messageCommands(program, run);
  auditCommand(program, run);
  tableCommands(program, run, output);
  deadLetterCommands(program, run);
  relayCommand(program, settings, output);
  doctorCommand(program, runner(openPatient, settings, output));
  for (const command of program.commands.flatMap((each) => [each, ...each.commands])) command.copyInheritedSettings(program);
  try {
    await program.parseAsync([...args], { from: 'user' });
    return 0;
  } catch (error) {
    return exitCodeOf(error, output);
  }
}

function exitCodeOf(error: unknown, output: Output): number {
  // It has said itself what is wrong, or has shown its help.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  const message = error instanceof Error ? error.message : String(error);
  if (message !== '') output.err(message);
  if (error instanceof Failure) return error.exitCode;
  return error instanceof OperationInvalidError || error instanceof OutboxOptionsError ? 2 : 1;
}
