import type { SERVERS } from '../setup/databases';
import { freshDatabase } from '../setup/databases';

/** A fresh database as the apps are told of it. */
export async function freshDatabaseUrl(name: (typeof SERVERS)[number]): Promise<{ url: string; drop(): Promise<void> }> {
  const { options, drop } = await freshDatabase(name);
  const url = new URL(process.env[`OUTBOX_${name.toUpperCase()}_URL`] ?? '');
  url.pathname = `/${String(options.database)}`;
  return { url: url.href, drop };
}
