import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { waitUntil } from '../wait-until.js';

export type AppName = 'orders' | 'inventory' | 'relay';

const LINES_KEPT = 30;
/** Milliseconds that an app may take to end in order. */
const STOP_LIMIT = 15_000;

/** One app of the shop as a process of its own. */
export class AppProcess {
  private readonly child: ChildProcess;
  private readonly exited: Promise<unknown>;
  private output: string[] = [];
  private ending = false;

  constructor(
    readonly name: AppName,
    variables: Readonly<Record<string, string>>,
  ) {
    const main = fileURLToPath(new URL(`../../../${name}/src/main.js`, import.meta.url));
    this.child = spawn(process.execPath, [main], {
      env: { ...process.env, ...variables },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.output = [...this.output, ...text.trimEnd().split('\n')].slice(-LINES_KEPT);
      });
    }
    this.exited = once(this.child, 'close');
  }

  /** Calls back when the process ends and nobody asked for it. */
  onFailure(callback: (error: Error) => void): void {
    this.child.once('close', () => {
      if (!this.ending) callback(new Error(`${this.name} ended by itself.`));
    });
  }

  get lastWords(): string {
    return `${this.name} (process ${this.pid}) said last:\n${this.output.join('\n')}`;
  }

  get pid(): number | undefined {
    return this.child.pid;
  }

  /** The signal that ended it, if one did. */
  get endedBy(): NodeJS.Signals | null {
    return this.child.signalCode;
  }

  async kill(): Promise<void> {
    this.ending = true;
    this.child.kill('SIGKILL');
    await this.exited;
  }

  /** Asks it to end; resolves to its exit code, `null` when a signal ended it. */
  async stop(): Promise<number | null> {
    this.ending = true;
    this.child.kill('SIGTERM');
    const limit = new AbortController();
    await Promise.race([this.exited, sleep(STOP_LIMIT, undefined, { signal: limit.signal }).catch(() => undefined)]);
    limit.abort();
    if (this.child.exitCode === null && this.child.signalCode === null) await this.kill();
    return this.child.exitCode;
  }
}

/** Until an app's HTTP side answers. */
export async function answers(url: string): Promise<void> {
  await waitUntil(`${url} answers`, () => fetch(url).then((response) => response.ok, () => false), {
    limit: 120_000,
    pause: 100,
  });
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  if (address === null || typeof address === 'string') throw new Error('The system gave no port.');
  return address.port;
}
