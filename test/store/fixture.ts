import { randomUUID } from 'node:crypto';
import type { DataSource, DataSourceOptions, QueryRunner } from 'typeorm';
import { slotOf } from '../../libs/outbox/src/event/hash';
import type { OutboxMessage } from '../../libs/outbox/src/event/message';
import type { Claim, ClaimedMessage, ClaimSession, Settlement } from '../../libs/outbox/src/store/claim';
import { type Connection, inTransaction } from '../../libs/outbox/src/store/connection';
import { detectDialect } from '../../libs/outbox/src/store/detect-dialect';
import type { Dialect } from '../../libs/outbox/src/store/dialect';
import { createTables } from '../../libs/outbox/src/store/migration';
import { OutboxStore } from '../../libs/outbox/src/store/outbox-store';
import { type Extended, extendPartitions } from '../../libs/outbox/src/store/partitions';
import { sweep, type SettleMode } from '../../libs/outbox/src/store/sweep';
import { tableNames } from '../../libs/outbox/src/store/tables';
import { type DatabaseName, freshDataSource } from '../setup/databases';
import { openClaimSession, openConnection } from './sessions';

export const NOTHING: Settlement = { sent: [], retried: [], parked: [], waiting: [] };

export function message(change: Partial<OutboxMessage> = {}): OutboxMessage {
  const messageId = randomUUID();
  return {
    messageId,
    topic: 'orders',
    key: 'k',
    type: 'order.created',
    aggregateType: 'order',
    aggregateId: 'k',
    tenantId: null,
    traceparent: null,
    correlationId: messageId,
    causationId: null,
    headers: {},
    payload: '{}',
    ...change,
  };
}

/** A key of the given lane, the nth of its kind. */
export function keyOfLane(lane: number, lanes: number, nth = 0, topic = 'orders'): string {
  for (let i = 0, found = 0; ; i++) {
    if (slotOf(topic, `key-${i}`, lanes) === lane && found++ === nth) return `key-${i}`;
  }
}

export const ids = (messages: readonly { messageId: string }[]): string[] => messages.map(({ messageId }) => messageId);

export const refuse =
  (delayMs = 0, error = 'no') =>
  (claimed: ClaimedMessage) => ({ message: claimed, error, delayMs });

export interface FixtureOptions {
  extra?: Partial<DataSourceOptions>;
  adapt?: (dialect: Dialect) => Dialect;
  /** What has made the tables before, such as an older server. */
  madeBy?: Dialect;
  /** With a log that is partitioned: `true` with ids that say today, `bare` as the migration leaves it. */
  partitioned?: boolean | 'bare';
}

/** The store on a fresh database, with what tests do to it. */
export class StoreFixture {
  private readonly sessions: ClaimSession[] = [];
  private connection: Connection | undefined;

  private constructor(
    readonly dataSource: DataSource,
    readonly store: OutboxStore,
    private readonly end: () => Promise<void>,
  ) {}

  static async open(
    database: DatabaseName,
    lanes = 8,
    { extra = {}, adapt = (dialect: Dialect) => dialect, partitioned = false, madeBy }: FixtureOptions = {},
  ): Promise<StoreFixture> {
    const { dataSource, close } = await freshDataSource(database, extra);
    if (madeBy) await createTables(dataSource, madeBy, lanes);
    const dialect = adapt(await detectDialect(dataSource.options, dataSource, tableNames({})));
    await createTables(dataSource, dialect, lanes, partitioned !== false);
    const f = new StoreFixture(dataSource, new OutboxStore(dialect, lanes, 'commit'), close);
    if (partitioned === true) await f.extend();
    return f;
  }

  get tables() {
    return this.store.dialect.tables;
  }

  async transaction<T>(work: (queryRunner: QueryRunner) => Promise<T>): Promise<T> {
    return this.dataSource.transaction((manager) => {
      if (!manager.queryRunner) throw new Error('no query runner');
      return work(manager.queryRunner);
    });
  }

  add(...messages: OutboxMessage[]): Promise<void> {
    return this.transaction((queryRunner) => this.store.add(queryRunner, messages));
  }

  async session(): Promise<ClaimSession> {
    const session = await openClaimSession(this.store, this.dataSource);
    this.sessions.push(session);
    return session;
  }

  /** Claims once, settles as told, and says what was claimed. */
  async once(
    decide: (claim: Claim) => Partial<Settlement>,
    limits = { lanes: this.store.lanes, rows: 1000, bytes: 10_000_000 },
  ): Promise<readonly ClaimedMessage[]> {
    const session = this.sessions[0] ?? (await this.session());
    const claim = await session.claim(limits);
    if (!claim) return [];
    await session.settle({ ...NOTHING, ...decide(claim) });
    return claim.messages;
  }

  sendAll(): Promise<readonly ClaimedMessage[]> {
    return this.once(({ messages }) => ({ sent: messages }));
  }

  async sweep(mode: SettleMode = 'mark'): Promise<number> {
    this.connection ??= await openConnection(this.store, this.dataSource);
    const { connection } = this;
    return (await inTransaction(connection, () => sweep(connection, this.store.dialect, mode))).messages;
  }

  query<T = Record<string, unknown>>(sql: string, parameters?: unknown[]): Promise<T[]> {
    return this.dataSource.query(this.store.dialect.bind(sql), parameters as never) as Promise<T[]>;
  }

  async count(table: keyof StoreFixture['tables'], where = '1 = 1'): Promise<number> {
    const [row] = await this.query<{ n: string | number }>(`SELECT COUNT(*) AS n FROM ${this.tables[table]} WHERE ${where}`);
    return Number(row?.n);
  }

  /** Makes the partitions of today and of three days ahead. */
  async extend(): Promise<Extended> {
    const { partitions } = this.store.dialect;
    if (!partitions) throw new Error('no partitions');
    const connection = await openConnection(this.store, this.dataSource);
    try {
      return await extendPartitions(connection, this.store.dialect, partitions, 3);
    } finally {
      await connection.close();
    }
  }

  makeDue(): Promise<unknown> {
    return this.query(`UPDATE ${this.tables.hold} SET retry_at = ${this.store.dialect.now} WHERE state <> 'blocked'`);
  }

  async clear(): Promise<void> {
    await this.closeSessions();
    const { message: log, pending, hold, held, settled, dead, consumed } = this.tables;
    for (const table of [log, pending, hold, held, settled, dead, consumed]) await this.query(`DELETE FROM ${table}`);
  }

  async close(): Promise<void> {
    await this.closeSessions();
    await this.end();
  }

  private async closeSessions(): Promise<void> {
    for (const session of this.sessions.splice(0)) await session.close();
    await this.connection?.close();
    this.connection = undefined;
  }
}
