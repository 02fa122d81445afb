import { setTimeout as sleep } from 'node:timers/promises';
import type { DataSource } from 'typeorm';

/** Milliseconds until the log is up to date with what was sent. */
export async function untilSwept(sql: DataSource): Promise<number> {
  const begun = performance.now();
  for (;;) {
    const left: unknown[] = await sql.query('SELECT id FROM outbox_settled LIMIT 1');
    if (left.length === 0) return performance.now() - begun;
    await sleep(10);
  }
}
