import { Cleaner, type Pass } from '../../libs/outbox/src/operate/cleaner';
import { DEFAULT_RETENTION, type Retention } from '../../libs/outbox/src/operate/retention-options';
import { PooledClaimSessions } from '../../libs/outbox/src/relay/claim-sessions';
import type { ClaimedMessage, Settlement } from '../../libs/outbox/src/store/claim';
import type { Connection } from '../../libs/outbox/src/store/connection';
import type { Dialect } from '../../libs/outbox/src/store/dialect';
import { IDS_PER_DAY, type LogPartition, type Partitions } from '../../libs/outbox/src/store/partitions';
import type { DatabaseName } from '../setup/databases';
import { message, StoreFixture } from '../store/fixture';
import { openConnection } from '../store/sessions';

export const DAY = 24 * 3600 * 1000;
export const QUICK: Retention = { ...DEFAULT_RETENTION, mode: 'partition', batchSize: 10, pause: 0 };
export const NOTHING_ELSE = { dead: 0, consumed: 0, failures: 0, audit: 0, sequences: 0, history: 0 };

/** A partitioned log in which days have passed. */
export class PartitionStage {
  private constructor(readonly f: StoreFixture) {}

  static async open(database: DatabaseName, change: (partitions: Partitions) => Partial<Partitions> = () => ({})): Promise<PartitionStage> {
    const adapt = (dialect: Dialect): Dialect => (dialect.partitions ? { ...dialect, partitions: { ...dialect.partitions, ...change(dialect.partitions) } } : dialect);
    return new PartitionStage(await StoreFixture.open(database, 8, { partitioned: 'bare', adapt, extra: { poolSize: 5 } as object }));
  }

  get partitions(): Partitions {
    const { partitions } = this.f.store.dialect;
    if (!partitions) throw new Error('no partitions');
    return partitions;
  }

  async today(): Promise<number> {
    const { epochMs, now } = this.f.store.dialect;
    const [row] = await this.f.query<{ ms: string }>(`SELECT ${epochMs(now)} AS ms`);
    return Math.floor(Number(row?.ms) / DAY);
  }

  /** Lets it be the day so long ago: its partition is there, and ids go on in it. */
  async begin(ago: number): Promise<bigint> {
    await this.make(ago);
    const first = await this.firstOf(ago);
    await this.alone((connection) => this.partitions.moveIds(connection, first));
    return first;
  }

  /** Makes partitions of days, unless they are there. */
  async make(...days: number[]): Promise<void> {
    for (const ago of days) {
      const first = await this.firstOf(ago);
      const end = (await this.list()).findLast(({ below }) => below !== null)?.below ?? IDS_PER_DAY;
      if (end <= first) await this.alone((connection) => this.partitions.add(connection, [{ name: `ago${ago}`, from: end, below: first + IDS_PER_DAY }]));
    }
  }

  async firstOf(ago: number): Promise<bigint> {
    return BigInt((await this.today()) - ago) * IDS_PER_DAY;
  }

  /** Messages that were sent on the day so long ago, which it is then. */
  async sent(ago: number, count: number): Promise<bigint> {
    const first = await this.begin(ago);
    await this.f.add(...Array.from({ length: count }, () => message({ key: `sent-${ago}` })));
    await this.send(`sent-${ago}`);
    await this.f.sweep();
    await this.age(ago, first);
    return first;
  }

  send(key: string): Promise<void> {
    return this.settle(key, (its) => ({ sent: its }));
  }

  /** Settles the messages of a key that wait. A claim need not take all lanes. */
  async settle(key: string, outcome: (its: readonly ClaimedMessage[]) => Partial<Settlement>): Promise<void> {
    const isIt = (it: ClaimedMessage): boolean => it.key === key;
    while (!(await this.f.once(({ messages }) => outcome(messages.filter(isIt)))).some(isIt));
  }

  /** The partition that the migration has made. */
  async dropFirst(): Promise<void> {
    const [first] = await this.names();
    await this.alone(async (connection) => {
      await this.partitions.drop(connection, String(first), async () => true);
    });
  }

  /** Lets what is in a day have happened then. */
  async age(ago: number, first: bigint): Promise<void> {
    const { nowPlusMs } = this.f.store.dialect;
    await this.f.query(
      `UPDATE ${this.f.tables.message} SET created_at = ${nowPlusMs}, updated_at = ${nowPlusMs} WHERE id >= ${first} AND id < ${first + IDS_PER_DAY}`,
      [-ago * DAY, -ago * DAY],
    );
  }

  list(): Promise<readonly LogPartition[]> {
    return this.partitions.list(this.f.dataSource);
  }

  async names(): Promise<string[]> {
    return (await this.list()).map(({ name }) => name);
  }

  async keys(): Promise<string[]> {
    return (await this.f.query<{ message_key: string }>(`SELECT message_key FROM ${this.f.tables.message} ORDER BY id`)).map((row) => row.message_key);
  }

  private async alone(work: (connection: Connection) => Promise<void>): Promise<void> {
    const connection = await openConnection(this.f.store, this.f.dataSource);
    await work(connection).finally(() => connection.close());
  }

  cleaner(rules: Retention = QUICK): Cleaner {
    const { store, dataSource } = this.f;
    return new Cleaner(store, () => new PooledClaimSessions(store, dataSource.options, { workers: 1, sessionTimeout: 10_000 }), rules);
  }

  pass(rules: Retention = QUICK): Promise<Pass> {
    return this.cleaner(rules).pass(rules);
  }
}
