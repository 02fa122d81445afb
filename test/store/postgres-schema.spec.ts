import { describe, expect, it } from 'vitest';
import { detectDialect } from '../../libs/outbox/src/store/detect-dialect';
import { createTables } from '../../libs/outbox/src/store/migration';
import { OutboxStore } from '../../libs/outbox/src/store/outbox-store';
import { tableNames } from '../../libs/outbox/src/store/tables';
import { freshDataSource } from '../setup/databases';
import { message } from './fixture';
import { openClaimSession } from './sessions';

const LANES = 8;
const ALL = { lanes: LANES, rows: 1000, bytes: 10_000_000 };

describe('the same tables on PostgreSQL, with the schema named and by the search path', () => {
  it.each(['public', 'shop'])('have the same locks and the same signals: %s', async (schema) => {
    const { dataSource, close } = await freshDataSource('postgres', { extra: { options: `-c search_path=${schema}` } });
    try {
      await dataSource.query(`CREATE SCHEMA IF NOT EXISTS ${schema}`);
      const made = await detectDialect(dataSource.options, dataSource, tableNames({}));
      await createTables(dataSource, made, LANES);
      const byPath = await detectDialect(dataSource.options, dataSource, tableNames({}));
      const named = await detectDialect({ ...dataSource.options, schema } as typeof dataSource.options, dataSource, tableNames({}));
      expect(named.tables.lane).toBe(`"${schema}"."outbox_lane"`);
      expect(byPath.tables.lane).toBe('"outbox_lane"');
      expect([made.commitSignal, named.commitSignal]).toEqual([byPath.commitSignal, byPath.commitSignal]);
      const [one, other] = [byPath, named].map((dialect) => new OutboxStore(dialect, LANES, 'commit')) as [OutboxStore, OutboxStore];
      await dataSource.transaction(({ queryRunner }) => one.add(queryRunner!, [message({ key: 'a' })]));
      const sessions = await Promise.all([openClaimSession(one, dataSource), openClaimSession(other, dataSource)]);
      try {
        expect((await sessions[0].claim(ALL))?.messages).toHaveLength(1);
        expect(await sessions[1].claim(ALL)).toBeFalsy();
      } finally {
        await Promise.all(sessions.map((session) => session.close()));
      }
    } finally {
      await close();
    }
  });
});
