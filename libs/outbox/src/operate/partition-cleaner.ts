import { Logger } from '@nestjs/common';
import { PartitionsMissingError } from '../errors';
import { type Connection, inTransaction } from '../store/connection';
import type { OutboxStore } from '../store/outbox-store';
import { type IdRange, isAwaited, isOld, lookThrough } from '../store/partition-look';
import { beyondDays, type Extended, extendPartitions, type LogPartition, type Partitions } from '../store/partitions';
import { purgeSent } from '../store/purge';
import type { Retention } from './retention-options';

/** Times that a pass tries to lock the log, in all, and the pause in between, in ms. */
const TRIES = 3;
const PAUSE = 1000;
/** Rows that one look through a partition reads, in batches. */
const LOOK = 10;

/** What a pass lends to its work on partitions. */
export interface PassOfPartitions {
  readonly connection: Connection;
  readonly rules: Retention;
  /** Opens a second connection, for what is looked at while the first has the log locked. */
  open(): Promise<Connection>;
  isStopping(): boolean;
  rest(milliseconds: number): Promise<void>;
  /** Called with the messages that have left the log. */
  onPurged(count: number): void;
}

/** What a look through a partition has come to. */
interface Finding {
  readonly is: 'free' | 'awaited' | 'young' | 'stopped';
  /** Messages that were seen. */
  readonly rows: number;
}

/** Makes partitions of the log ahead, and drops those that are old and in which nothing waits. */
export class PartitionCleaner {
  private readonly logger = new Logger('OutboxCleaner');

  constructor(private readonly store: OutboxStore) {}

  /** @throws PartitionsMissingError when the log is not partitioned */
  async check(sql: Pick<Connection, 'query'>): Promise<Partitions> {
    const { partitions } = this.store.dialect;
    if (partitions && (await partitions.list(sql)).length > 0) return partitions;
    throw new PartitionsMissingError(
      "retention.mode 'partition' needs a log that is partitioned: make it with outboxMigrations({ partitioned: true }). " +
        'A log that is there already is not converted; docs/operating.md says what to do.',
    );
  }

  /** Makes partitions of today and ahead. */
  async extend(connection: Connection, rules: Retention): Promise<Extended> {
    const partitions = await this.check(connection);
    const extended = await extendPartitions(connection, this.store.dialect, partitions, rules.ahead);
    if (extended.added.length > 0) this.logger.log(`Partitions made: ${extended.added.map(({ name }) => name).join(', ')}.`);
    if (extended.trouble === 'catch-all') {
      this.logger.warn('No partitions are made: ids go on beyond all days. Somebody has set them. Old rows are deleted one by one.');
    }
    if (extended.trouble === 'busy') {
      this.logger.warn('No partitions could be made: a transaction that has written to the log stays open. Messages go on into the last one; it is tried again with the next pass.');
    }
    return extended;
  }

  /** Takes old messages out of the log. False when the process stops. */
  async clean(pass: PassOfPartitions): Promise<boolean> {
    const partitions = await this.check(pass.connection);
    const { partitions: all, closedBelow } = await this.extend(pass.connection, pass.rules);
    let tries = TRIES;
    for (const partition of all) {
      if (partition.below === null || partition.below > closedBelow) continue;
      if (tries === 0) break;
      if (pass.isStopping()) return false;
      const finding = await this.look(partition, pass);
      if (finding.is === 'stopped') return false;
      if (finding.is === 'young') continue;
      if (finding.is === 'awaited') {
        if (!(await this.cleanRows(partition, pass))) return false;
        continue;
      }
      while (tries > 0) {
        const dropped = await this.drop(partitions, partition, pass);
        if (dropped === 'dropped') {
          pass.onPurged(finding.rows);
          this.logger.log(`Partition ${partition.name} is dropped, with ${finding.rows} messages.`);
        }
        if (dropped !== 'busy') break;
        if (--tries > 0) await pass.rest(PAUSE);
        else this.logger.warn(`Partition ${partition.name} could not be dropped: a transaction that has written to the log stays open. It is tried again with the next pass.`);
        if (pass.isStopping()) return false;
      }
    }
    for (const range of beyondDays(all)) if (!(await this.cleanRows(range, pass))) return false;
    return true;
  }

  private async look(partition: LogPartition, { connection, rules, isStopping, rest }: PassOfPartitions): Promise<Finding> {
    const { dialect } = this.store;
    const age = Number(rules.sent);
    let rows = 0;
    if ((await isOld(connection, dialect, partition, age)) === false) return { is: 'young', rows };
    for (let after: string | null = '-1'; after !== null; ) {
      if (isStopping()) return { is: 'stopped', rows };
      const stretch = await lookThrough(connection, dialect, partition, after, { age, rows: LOOK * rules.batchSize });
      rows += stretch.rows;
      if (stretch.unsent) return { is: 'awaited', rows };
      if (stretch.young) return { is: 'young', rows };
      after = stretch.next;
      if (after !== null) await rest(rules.pause);
    }
    return { is: 'free', rows };
  }

  private async drop(partitions: Partitions, partition: LogPartition, { connection, open }: PassOfPartitions): Promise<'dropped' | 'awaited' | 'busy'> {
    // Not kept from one partition to the next: the server ends a connection that is silent.
    const look = await open();
    try {
      const dropped = await partitions.drop(connection, partition.name, async () => !(await isAwaited(look, this.store.dialect, partition)));
      return dropped ? 'dropped' : 'awaited';
    } catch (error) {
      if (partitions.isBusy(error)) return 'busy';
      throw error;
    } finally {
      await look.close();
    }
  }

  /** Deletes what is old row by row, around what waits. False when the process stops. */
  private async cleanRows({ from, below }: IdRange, { connection, rules, isStopping, rest, onPurged }: PassOfPartitions): Promise<boolean> {
    const limits = { age: Number(rules.sent), rows: rules.batchSize, ...(below === null ? {} : { below }) };
    for (let after: string | null = from === null ? '0' : String(from - 1n); after !== null; ) {
      if (isStopping()) return false;
      const begin: string = after;
      const batch = await inTransaction(connection, () => purgeSent(connection, this.store.dialect, begin, limits, 'delete'));
      onPurged(batch.purged);
      after = batch.next;
      if (after !== null) await rest(rules.pause);
    }
    return true;
  }
}
