import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { DatabaseClock } from '../../libs/outbox/src/observe/metrics/database-clock';
import type { Reading } from '../../libs/outbox/src/observe/metrics/outbox-metrics';
import { TableReadings } from '../../libs/outbox/src/observe/metrics/table-readings';
import type { Sql } from '../../libs/outbox/src/store/dialect';
import { DATABASES } from '../setup/databases';
import { fillPending, refreshStatistics } from '../store/bulk';
import { StoreFixture } from '../store/fixture';

/** More than are looked at by topic; a million where there is time. */
const MANY = Number(process.env['OUTBOX_TEST_ROWS'] ?? 20_000);
/** It may rest for ten times what a reading takes. */
const PATIENT = { timeout: 30_000 };

describe.each(DATABASES)('readings of the tables on %s', (database) => {
  let f: StoreFixture;
  let statements: string[];
  let sql: Sql;
  beforeAll(async () => {
    f = await StoreFixture.open(database);
  });
  beforeEach(async () => {
    await f.clear();
    statements = [];
    sql = {
      query: (statement) => {
        statements.push(statement);
        return f.dataSource.query(statement);
      },
    };
  });
  afterAll(() => f.close());

  const readings = (): TableReadings => new TableReadings(sql, f.store, new DatabaseClock(f.store.dialect));
  const sum = (all: readonly Reading[] | undefined, name: string, topic?: string): number =>
    (all ?? []).filter(({ instrument, labels }) => instrument.name === name && (topic === undefined || labels.topic === topic))
      .reduce((total, { value }) => total + value, 0);

  it(`count ${MANY} messages that wait, exactly in sum`, async () => {
    await fillPending(f, 1, MANY);
    await f.query(`UPDATE ${f.tables.message} SET topic = 'bills' WHERE id <= 2500`);
    if (database !== 'sqlite') await refreshStatistics(f);
    const begun = performance.now();
    const all = await readings().read();
    if (process.env['OUTBOX_TEST_ROWS']) process.stderr.write(`${database}: ${MANY} rows read in ${Math.round(performance.now() - begun)} ms\n`);
    expect(sum(all, 'outbox.messages.pending')).toBe(MANY);
    expect(sum(all, 'outbox.messages.pending', 'orders')).toBeGreaterThan(0);
    expect(sum(all, 'outbox.oldest.age')).toBeGreaterThanOrEqual(0);
  });

  it('serve those who ask together, and rest before they are taken again', async () => {
    const tables = readings();
    const [one, two] = await Promise.all([tables.read(), tables.read()]);
    expect(one).toBe(two);
    const asked = statements.length;
    expect(new Set(statements).size).toBe(asked);
    // Reading has just ended, so it rests.
    expect(await tables.read()).toBe(one);
    expect(statements).toHaveLength(asked);
  });

  it('say nothing when the database does not answer, and a topic whose messages have gone is at 0', async () => {
    await f.query(`INSERT INTO ${f.tables.dead} (id, lane, topic, message_key) VALUES (1, 0, 'orders', 'k')`);
    const tables = readings();
    expect(sum(await tables.read(), 'outbox.messages.dead', 'orders')).toBe(1);
    await f.query(`DELETE FROM ${f.tables.dead}`);
    await expect.poll(async () => sum(await tables.read(), 'outbox.messages.dead'), PATIENT).toBe(0);
    expect((await tables.read())?.some(({ labels }) => labels.topic === 'orders')).toBe(true);
    sql.query = () => Promise.reject(new Error('away'));
    await expect.poll(() => tables.read(), PATIENT).toBeUndefined();
  });
});
