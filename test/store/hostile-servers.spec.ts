import { randomUUID } from 'node:crypto';
import { outboxMigrations } from 'nestjs-transactional-outbox';
import { DataSource, type DataSourceOptions } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { toMessage } from '../../libs/outbox/src/event/to-message';
import { detectDialect } from '../../libs/outbox/src/store/detect-dialect';
import { OutboxStore } from '../../libs/outbox/src/store/outbox-store';
import { DEFAULT_LANES, tableNames } from '../../libs/outbox/src/store/tables';
import { type OwnServer, startOwn } from '../services/index.mjs';

/** Settings of old or careless servers. */
const SETTINGS = {
  'innodb-default-row-format': 'COMPACT',
  'character-set-server': 'latin1',
  'sql-mode': '',
  'explicit-defaults-for-timestamp': 'OFF',
  'default-time-zone': '+05:30',
};

describe.each(['mysql', 'mariadb'] as const)('a %s server with hostile settings', (name) => {
  let server: OwnServer;
  let options: DataSourceOptions;
  let dataSource: DataSource;

  beforeAll(async () => {
    server = await startOwn(name, { settings: SETTINGS });
    const { host, port, user, password } = server.info;
    const admin = await new DataSource({ type: name, host, port, username: user, password } as DataSourceOptions).initialize();
    // Whatever the server's default is: latin1, here.
    await admin.query('CREATE DATABASE hostile');
    await admin.destroy();
    options = { type: name, host, port, username: user, password, database: 'hostile' } as DataSourceOptions;
    dataSource = await new DataSource({ ...options, migrations: outboxMigrations() } as DataSourceOptions).initialize();
    await dataSource.runMigrations();
  });
  afterAll(async () => {
    await dataSource?.destroy();
    await server?.remove();
  });

  // D15, F1
  it('gets tables with plain indexes, their own character set and no hidden updates of times', async () => {
    for (const table of Object.values(tableNames({}))) {
      const [row] = (await dataSource.query(`SHOW CREATE TABLE ${table}`)) as Record<string, string>[];
      const sql = row?.['Create Table'] ?? '';
      expect(sql).toMatch(/utf8mb4/);
      expect(sql).not.toMatch(/ON UPDATE|USING HASH|latin1/);
    }
  });

  // D6, D8, and the clock of another time zone.
  it('keeps every text whole, and times in UTC', async () => {
    const dialect = await detectDialect(dataSource.options, dataSource, tableNames({}));
    const store = new OutboxStore(dialect, DEFAULT_LANES, 'commit');
    const text = 'é ключ 鍵 🔑 ';
    const payload = JSON.stringify({ emoji: '😀', long: 'x'.repeat(1_000_000) });
    const raw = { topic: 't', type: text, key: text, aggregateId: text, headers: { [text]: text }, payload, messageId: randomUUID() };
    await dataSource.transaction((manager) =>
      store.add(manager, [toMessage(raw, 2_000_000, { tenantId: text }), toMessage({ ...raw, payload: 'x'.repeat(70_000), messageId: randomUUID() }, 2_000_000, {})]),
    );
    const rows = (await dataSource.query(
      `SELECT message_key, event_type, aggregate_id, tenant_id, headers, payload, ${dialect.epochMs('created_at')} AS at FROM outbox_message ORDER BY id`,
    )) as Record<string, string>[];
    expect(rows[0]).toMatchObject({ message_key: text, event_type: text, aggregate_id: text, tenant_id: text, payload });
    expect(JSON.parse(rows[0]?.['headers'] ?? '')).toEqual({ [text]: text });
    expect(rows[1]?.['payload']).toHaveLength(70_000);
    expect(Math.abs(Number(rows[0]?.['at']) - Date.now())).toBeLessThan(600_000);
  });

  it('is refused over a connection whose character set would damage texts', async () => {
    const narrow = await new DataSource({ ...options, charset: 'UTF8_GENERAL_CI' } as DataSourceOptions).initialize();
    await expect(detectDialect(narrow.options, narrow, tableNames({}))).rejects.toMatchObject({
      code: 'OUTBOX_DATABASE_UNSUPPORTED',
      message: expect.stringContaining('utf8mb4') as unknown,
    });
    await narrow.destroy();
  });
});
