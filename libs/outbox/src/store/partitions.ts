import type { Connection } from './connection';
import type { Dialect, Sql } from './dialect';

/**
 * How many ids a day has in a partitioned log: day `d` after 1970 has those from `d * IDS_PER_DAY` on. What a day needs
 * beyond that it takes from the next.
 */
export const IDS_PER_DAY = 10_000_000_000n;

const DAY_MS = 24 * 3600 * 1000;

/** A partition of the log. */
export interface LogPartition {
  readonly name: string;
  /** Its first id; `null` when there is none, and for the catch-all. */
  readonly from: bigint | null;
  /** The first id behind it; `null` for the catch-all. */
  readonly below: bigint | null;
}

/** A partition that is not made yet. */
export interface NewPartition {
  readonly name: string;
  readonly from: bigint;
  readonly below: bigint;
}

/** What differs between databases about the partitions of the log. */
export interface Partitions {
  /** In the order of their ids, the catch-all last. Empty when the log is not partitioned. */
  list(sql: Sql): Promise<readonly LogPartition[]>;
  /** Makes partitions behind the last one, in a moment in which nobody writes to the log where it must be. */
  add(connection: Connection, partitions: readonly NewPartition[]): Promise<void>;
  /** Lets the ids from now on be greater than the given one, which is greater than all before. Nobody waits for it. */
  moveIds(connection: Connection, to: bigint): Promise<void>;
  /**
   * Locks the log for as long as it takes to ask whether a partition is still free, and to drop it then. No transaction
   * is open then that has written to the log.
   */
  drop(connection: Connection, name: string, isFree: () => Promise<boolean>): Promise<boolean>;
  /** Whether the log could not be locked in time. */
  isBusy(error: unknown): boolean;
}

/** What {@link extendPartitions} has come to. */
export interface Extended {
  readonly partitions: readonly LogPartition[];
  readonly added: readonly NewPartition[];
  /** Ids below this one are not given any more. */
  readonly closedBelow: bigint;
  /** Why no partitions were made though they are missing: the log was locked by others, or the catch-all has rows. */
  readonly trouble: 'busy' | 'catch-all' | null;
}

/** Makes the partitions of today and of some days ahead, and lets ids go on with those of today. */
export async function extendPartitions(connection: Connection, dialect: Dialect, partitions: Partitions, ahead: number): Promise<Extended> {
  const today = await currentDay(connection, dialect);
  let all = await partitions.list(connection);
  const end = all.findLast(({ below }) => below !== null)?.below ?? IDS_PER_DAY;
  const missing = missingPartitions(end, today, ahead);
  let trouble: Extended['trouble'] = null;
  if (missing.length > 0) {
    // Rows in the way would be copied, under a lock.
    if ((await newestId(connection, dialect, `WHERE m.id >= ${end}`)) !== null) trouble = 'catch-all';
    else trouble = await addUnlessBusy(connection, partitions, missing);
    all = await partitions.list(connection);
  }
  const first = BigInt(today) * IDS_PER_DAY;
  const hasToday = all.some(({ below }) => below !== null && below > first);
  const newest = (await newestId(connection, dialect)) ?? 0n;
  if (hasToday && newest < first) await partitions.moveIds(connection, first);
  return { partitions: all, added: trouble === null ? missing : [], closedBelow: hasToday && newest < first ? first : newest, trouble };
}

/** The ids that only the catch-all takes: between partitions, where the database leaves them to it, and behind the last. */
export function beyondDays(partitions: readonly LogPartition[]): readonly { readonly from: bigint | null; readonly below: bigint | null }[] {
  const ranges: { from: bigint | null; below: bigint | null }[] = [];
  let end: bigint | null = null;
  for (const { from, below } of partitions) {
    if (below === null) continue;
    if (from !== end) ranges.push({ from: end, below: from });
    end = below;
  }
  return [...ranges, { from: end, below: null }];
}

function missingPartitions(end: bigint, today: number, ahead: number): readonly NewPartition[] {
  const missing: NewPartition[] = [];
  let from = end;
  // Days on which nothing ran have no ids: the first partition begins where the last one ends.
  for (let day = Math.max(today, Number(end / IDS_PER_DAY)); day <= today + ahead; day++) {
    const below = BigInt(day + 1) * IDS_PER_DAY;
    missing.push({ name: `p${new Date(day * DAY_MS).toISOString().slice(0, 10).replaceAll('-', '')}`, from, below });
    from = below;
  }
  return missing;
}

async function addUnlessBusy(connection: Connection, partitions: Partitions, missing: readonly NewPartition[]): Promise<'busy' | null> {
  try {
    await partitions.add(connection, missing);
    return null;
  } catch (error) {
    if (partitions.isBusy(error)) return 'busy';
    throw error;
  }
}

/** Days since 1970, by the database's clock. */
async function currentDay(sql: Sql, { epochMs, now }: Dialect): Promise<number> {
  const rows = (await sql.query(`SELECT ${epochMs(now)} AS ms`)) as { ms: number | string }[];
  return Math.floor(Number(rows[0]?.ms) / DAY_MS);
}

async function newestId(sql: Sql, { tables, idText }: Dialect, where = ''): Promise<bigint | null> {
  const rows = (await sql.query(`SELECT ${idText('m.id')} AS id FROM ${tables.message} m ${where} ORDER BY m.id DESC LIMIT 1`)) as { id: string }[];
  return rows[0] ? BigInt(rows[0].id) : null;
}
