import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { until } from '../consume/until';

const PROGRAM = fileURLToPath(new URL('../../libs/outbox/dist/cli/main.js', import.meta.url));

/** `npx outbox relay` as it is installed, in a process of its own. */
export class RelayProgram {
  output = '';
  private readonly child: ChildProcess;
  private readonly exited: Promise<unknown[]>;

  constructor(args: readonly string[], variables: Readonly<Record<string, string>> = {}) {
    this.child = spawn(process.execPath, [PROGRAM, ...args], { env: { PATH: process.env['PATH'], ...variables }, stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [this.child.stdout, this.child.stderr]) stream?.setEncoding('utf8').on('data', (text: string) => (this.output += text));
    this.exited = once(this.child, 'close');
  }

  async says(text: string | RegExp): Promise<void> {
    await until(`the relay says ${text}`, () => (typeof text === 'string' ? this.output.includes(text) : text.test(this.output))).catch((error: unknown) => {
      throw new Error(`${String(error)} It said:\n${this.output}`);
    });
  }

  signal(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  /** The exit code, or the signal that has ended it. */
  async ended(): Promise<unknown> {
    const [code, signal] = await this.exited;
    return code ?? signal;
  }

  async kill(): Promise<void> {
    this.child.kill('SIGKILL');
    await this.exited;
  }
}
