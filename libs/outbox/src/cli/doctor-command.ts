import type { Command } from 'commander';
import type { DataSource } from 'typeorm';
import { groupBy } from '../event/group-by';
import { type Diagnosis, diagnoseOutbox } from '../operate/doctor/diagnose';
import type { Finding, Verdict } from '../operate/doctor/finding';
import type { TableNames } from '../store/tables';
import { type BrokerOptions, withBrokers } from './brokers';
import { openDataSource, type Source, tablesOf } from './data-source';
import { Failure } from './failure';
import { kafkaClient } from './kafka-client';
import { given, list, wholeNumber } from './parse';
import { table } from './print';
import type { RunWith } from './run';

/** A database on which an outbox is, or is to be. */
interface Patient {
  readonly dataSource: DataSource;
  readonly tables: Partial<TableNames>;
  close(): Promise<void>;
}

export async function openPatient(source: Source): Promise<Patient> {
  const tables = tablesOf(source);
  const dataSource = await openDataSource(source);
  return { dataSource, tables, close: () => dataSource.destroy() };
}

interface DoctorOptions extends BrokerOptions {
  readonly topics?: readonly string[];
  readonly lanes?: number;
  readonly maxMessageBytes?: number;
  readonly sessionTimeout?: number;
}

export function doctorCommand(program: Command, run: RunWith<Patient>): void {
  withBrokers(program.command('doctor').description('checks the set-up, changes nothing, and says what to do; exit code 1 when it finds a fault'))
    .option('--topics <list>', 'topics to look at, beside those in the log', list)
    .option('--lanes <n>', 'lanes, as in the options of the module', wholeNumber)
    .option('--max-message-bytes <n>', 'maxMessageBytes of the module (default 1000000)', wholeNumber)
    .option('--session-timeout <ms>', 'relay.sessionTimeout of the module (default 10000)', wholeNumber)
    .action(run(async ({ dataSource, tables }, print, { topics, lanes, maxMessageBytes, sessionTimeout, ...brokers }: DoctorOptions) => {
      const kafka = brokers.brokers === undefined && brokers.kafkaConfig === undefined ? undefined : await kafkaClient(brokers);
      const diagnosis = await diagnoseOutbox(dataSource, { tables, ...given({ topics, lanes, maxMessageBytes, sessionTimeout, kafka }) });
      print(diagnosis, describe(diagnosis));
      if (!diagnosis.healthy) throw new Failure('', 1);
    }));
}

const WORST_FIRST = ['fault', 'warning', 'unknown', 'ok'] as const;

/** What was seen, and below it what to do, the worst first. */
function describe({ findings }: Diagnosis): string {
  const word = (verdict: Verdict): string => (verdict === 'fault' ? 'FAULT' : verdict);
  const of = (verdict: Verdict): readonly Finding[] => findings.filter((finding) => finding.verdict === verdict);
  const advice = WORST_FIRST.flatMap((verdict) =>
    [...groupBy(of(verdict).filter((finding) => finding.advice !== null), (finding) => finding.advice)].map(
      ([text, about]) => `${word(verdict)} ${about.map(({ check }) => check).join(', ')}: ${text}`,
    ),
  );
  return [
    table(['', 'check', 'seen'], findings.map(({ verdict, check, seen }) => [word(verdict), check, seen])),
    ...(advice.length > 0 ? ['', 'What to do:', ...advice] : []),
    '',
    WORST_FIRST.map((verdict) => `${of(verdict).length} ${verdict}`).join(', '),
  ].join('\n');
}
