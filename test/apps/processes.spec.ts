import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { outboxMigrations } from 'nestjs-transactional-outbox';
import { DataSource } from 'typeorm';
import { afterEach, describe, expect, it } from 'vitest';
import { databaseOptions } from '../../apps/shop/src/database.js';
import { freshDatabaseUrl } from './database-url';
import { PATIENT } from './patience';

/** An app as it is started in production: the built file, and what the environment says. */
class App {
  output = '';
  private readonly child: ChildProcess;
  private readonly exited: Promise<unknown[]>;

  constructor(name: string, variables: Record<string, string>) {
    const main = fileURLToPath(new URL(`../../dist/apps/${name}/src/main.js`, import.meta.url));
    this.child = spawn(process.execPath, [main], { env: { PATH: process.env['PATH'], NO_COLOR: '1', ...variables } });
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => (this.output += text));
    }
    this.exited = once(this.child, 'close');
  }

  async exitCode(): Promise<unknown> {
    const [code] = await this.exited;
    return code;
  }

  signal(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }
}

describe('apps as processes', () => {
  const ends: (() => unknown)[] = [];

  afterEach(async () => {
    for (const end of ends.splice(0).toReversed()) await end();
  });

  it.each(['orders', 'inventory', 'relay'])('%s says in plain lines what its environment lacks', async (name) => {
    const app = new App(name, {});
    expect(await app.exitCode()).toBe(1);
    expect(app.output).toMatch(/^The environment is not complete:\n {2}DATABASE_URL is missing.*\n {2}KAFKA_BROKERS is missing.*\n$/);
  });

  it.each(['kafkajs', 'platformatic'])('the relay runs without entities and events, over %s, and exits with 0 when it is asked to stop', async (client) => {
    const { url, drop } = await freshDatabaseUrl('mysql');
    ends.push(drop);
    const dataSource = await new DataSource({ ...databaseOptions(url), migrations: outboxMigrations() }).initialize();
    await dataSource.runMigrations();
    await dataSource.destroy();

    const relay = new App('relay', {
      DATABASE_URL: url,
      KAFKA_BROKERS: process.env['OUTBOX_KAFKA_BROKERS'] ?? '',
      OUTBOX_KAFKA_CLIENT: client,
    });
    ends.push(() => relay.signal('SIGKILL'));
    await expect.poll(() => relay.output, PATIENT).toContain('Relay started');
    relay.signal('SIGTERM');
    expect(await relay.exitCode()).toBe(0);
  });
});
