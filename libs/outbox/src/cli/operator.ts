import { Cleaner } from '../operate/cleaner';
import { DeadLetters } from '../operate/dead-letters';
import { OutboxAdmin } from '../operate/outbox-admin';
import { DEFAULT_RETENTION } from '../operate/retention-options';
import { type ClaimSessions, PooledClaimSessions, SerialClaimSessions } from '../relay/claim-sessions';
import { DEFAULT_RELAY_OPTIONS } from '../relay/relay-options';
import { detectDialect } from '../store/detect-dialect';
import { OutboxStore } from '../store/outbox-store';
import { tableNames } from '../store/tables';
import { AmbientTransactions } from '../transaction/ambient-transactions';
import { TransactionRunner } from '../transaction/transaction-runner';
import { laneCountOf, openDataSource, type Source, tablesOf } from './data-source';

/** What a command works with. */
export interface OperatorTools {
  readonly admin: OutboxAdmin;
  readonly deadLetters: DeadLetters;
  close(): Promise<void>;
}

export async function openOperator(source: Source): Promise<OperatorTools> {
  const names = tableNames({ tables: tablesOf(source) });
  const dataSource = await openDataSource(source);
  try {
    const dialect = await detectDialect(dataSource.options, dataSource, names);
    const store = new OutboxStore(dialect, (await laneCountOf(dataSource, dialect.tables.lane)) ?? 0, 'commit');
    await store.check(dataSource);
    const ambient = new AmbientTransactions(dataSource, { flush: (queryRunner, messages) => store.add(queryRunner, messages), onWritten: () => undefined });
    ambient.join();
    const { sessionTimeout } = DEFAULT_RELAY_OPTIONS;
    const sessions = (workers: number): ClaimSessions =>
      ambient.serial
        ? new SerialClaimSessions(store, () => ambient.createQueryRunner())
        : new PooledClaimSessions(store, dataSource.options, { workers, sessionTimeout });
    // Relays are other processes: they look by themselves.
    const admin = new OutboxAdmin(dataSource, store, () => sessions(0), new Cleaner(store, () => sessions(1), DEFAULT_RETENTION), () => undefined);
    return {
      admin,
      deadLetters: new DeadLetters(ambient, new TransactionRunner(ambient), store, admin),
      async close() {
        await admin.close();
        ambient.leave();
        await dataSource.destroy();
      },
    };
  } catch (error) {
    await dataSource.destroy();
    throw error;
  }
}
