import { execFileSync } from 'node:child_process';
import { chownSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Logger } from '@nestjs/common';
import { DataSource, type DataSourceOptions } from 'typeorm';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { type OwnServer, startOwn } from '../services/index.mjs';
import { SERVERS } from '../setup/databases';
import { message, StoreFixture } from '../store/fixture';
import { Relays, until } from './fixture';
import { ScriptedPublishers } from './scripted-publisher';

/** Where tables have no more room than this, it is soon full. */
const MEGABYTES = 48;
/** InnoDB's files may not grow further; on PostgreSQL the disk itself is small. */
const SETTINGS = {
  'innodb-file-per-table': 'OFF',
  'innodb-data-file-path': `ibdata1:12M:autoextend:max:${MEGABYTES}M`,
};

/** It has room in a page: where the pages beside it have none, MariaDB 10.11 ends itself at times. */
const ROW = 'x'.repeat(6000);

/** A small disk, where this user may mount one. */
function smallDisk(): { readonly folder: string; remove(): void } | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'outbox-small-disk-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${MEGABYTES}m`, 'tmpfs', folder], { stdio: 'ignore' });
  } catch {
    rmSync(folder, { recursive: true });
    return undefined;
  }
  return {
    folder,
    remove() {
      execFileSync('umount', [folder]);
      rmSync(folder, { recursive: true });
    },
  };
}

const disk = smallDisk();
afterAll(() => disk?.remove());

describe.each(SERVERS)('a relay whose %s runs out of room', (database) => {
  const variable = `OUTBOX_${database.toUpperCase()}_URL`;
  const usual = process.env[variable];
  let server: OwnServer;
  let f: StoreFixture;
  let relays: Relays;

  beforeAll(async () => {
    if (database === 'postgres' && !disk) return;
    server = await startOwn(database, database === 'postgres' ? {} : { settings: SETTINGS });
    process.env[variable] = server.info.url;
    f = await StoreFixture.open(database);
    if (database === 'postgres' && disk && server.info.dataDir) {
      const { uid, gid } = statSync(server.info.dataDir);
      chownSync(disk.folder, uid, gid);
      await moveTo(f.dataSource, disk.folder);
    }
    relays = new Relays(f);
    vi.spyOn(Logger.prototype, 'error').mockReturnValue();
    vi.spyOn(Logger.prototype, 'log').mockReturnValue();
  });
  afterEach(() => relays?.stopAll());
  afterAll(async () => {
    process.env[variable] = usual;
    await f?.close();
    await server?.remove();
    vi.restoreAllMocks();
  });

  it.skipIf(database === 'postgres' && !disk)('loses nothing, and goes on when there is room', async () => {
    await f.query(`CREATE TABLE ballast (id INT, part INT, x VARCHAR(8000), PRIMARY KEY (id, part))`);
    if (database === 'postgres') await f.query('ALTER TABLE ballast ALTER COLUMN x SET STORAGE EXTERNAL');
    const publishers = new ScriptedPublishers();
    relays.start({ batchSize: 20 }, publishers);
    const committed: string[] = [];
    const refused: string[] = [];
    const write = async (payload: string): Promise<void> => {
      const one = message({ key: `k${committed.length % 50}`, payload });
      try {
        await f.add(one);
        committed.push(one.messageId);
      } catch {
        refused.push(one.messageId);
      }
    };
    const parts = Array.from({ length: 70 }, (_, part) => part);
    let ballast = 0;
    while (refused.length < 20) {
      ballast++;
      await f.query(`INSERT INTO ballast (id, part, x) VALUES ${parts.map((part) => `(${ballast}, ${part}, '${ROW}')`).join(', ')}`).catch(() => undefined);
      await write(ROW);
    }
    const done = (sql: string, ...values: number[]): Promise<boolean> => f.query(sql, values).then(() => true, () => false);
    // On MariaDB to drop a table takes room too: then row by row.
    if (!(await done('DROP TABLE ballast'))) for (; ballast > 0; ballast--) await until(() => done('DELETE FROM ballast WHERE id = ?', ballast));
    const before = committed.length;
    await until(async () => {
      await write('after');
      return committed.length >= before + 20;
    });
    await until(async () => (await f.count('pending')) + (await f.count('held')) === 0);
    const published = new Set(publishers.published.map(({ messageId }) => messageId));
    expect(committed.filter((id) => !published.has(id))).toEqual([]);
    expect(refused.filter((id) => published.has(id))).toEqual([]);
    await until(async () => (await f.count('message', 'status = 1')) === committed.length);
  });
});

/** Has the database keep its tables in the folder: only an onlooker can move it. */
async function moveTo(inside: DataSource, folder: string): Promise<void> {
  const { options } = inside;
  const admin = await new DataSource({ ...options, database: 'postgres' } as DataSourceOptions).initialize();
  await inside.destroy();
  await admin.query(`CREATE TABLESPACE small LOCATION '${folder}'`);
  await admin.query(`ALTER DATABASE "${String(options.database)}" SET TABLESPACE small`);
  await admin.destroy();
  await inside.initialize();
}
