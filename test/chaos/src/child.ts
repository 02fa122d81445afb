import { type ChildProcess, fork } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ChildConfig, ChildMessage, ParentMessage } from './child-config.js';

export type ChildRole = 'writer' | 'relay' | 'consumer';

interface PlaceOptions {
  readonly role: ChildRole;
  readonly index: number;
  readonly logFolder: string;
  readonly config: Omit<ChildConfig, 'name'>;
  readonly onMessage: (message: ChildMessage) => void;
  /** Called when a process ends that nobody ended. */
  readonly onCrash: (what: string) => void;
}

const READY_MS = 60_000;
const STOP_MS = 20_000;

/** Whoever is frozen would outlive us. */
const living = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of living) child.kill('SIGKILL');
});

/** A place for one process, which another takes when it is killed. */
export class ChildPlace {
  private child: ChildProcess | undefined;
  private incarnation = 0;
  private frozen = false;
  private ended = false;
  private ready: Promise<void> = Promise.resolve();

  constructor(private readonly options: PlaceOptions) {}

  get name(): string {
    return `${this.options.role}-${this.options.index}`;
  }

  /** The process that has the place now. */
  get process(): string {
    return `${this.name}.${this.incarnation}`;
  }

  /** Processes of the place that are no more. */
  get killed(): number {
    return this.incarnation - 1;
  }

  /** Resolves when the process says that it works, or has ended. */
  start(): Promise<void> {
    const { role, logFolder, config, onMessage } = this.options;
    this.incarnation++;
    const name = this.process;
    const log = openSync(join(logFolder, `${this.name}.log`), 'a');
    const child = fork(fileURLToPath(new URL(`./${role}.js`, import.meta.url)), {
      env: { ...process.env, CHAOS_CHILD: JSON.stringify({ ...config, name } satisfies ChildConfig), NO_COLOR: '1' },
      stdio: ['ignore', log, log, 'ipc'],
    });
    closeSync(log);
    living.add(child);
    this.child = child;
    this.frozen = false;
    this.ready = new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, READY_MS);
      child.on('message', (message: ChildMessage) => {
        if (message.type === 'ready') resolve();
        else onMessage(message);
      });
      child.once('exit', (code, signal) => {
        living.delete(child);
        clearTimeout(timer);
        resolve();
        if (this.ended || this.child !== child) return;
        this.options.onCrash(`${name} ended by itself with ${signal ?? `code ${code}`}`);
        setTimeout(() => {
          if (!this.ended && this.child === child) void this.start();
        }, 300);
      });
    });
    return this.ready;
  }

  send(message: ParentMessage): void {
    if (this.child?.connected) this.child.send(message, () => undefined);
  }

  /** SIGKILL, and a new process in its place. */
  async killAndReplace(afterMs: number): Promise<void> {
    const { child } = this;
    this.child = undefined;
    if (child?.exitCode === null) {
      const gone = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGKILL');
      await gone;
    }
    await new Promise((resolve) => setTimeout(resolve, afterMs));
    if (!this.ended && !this.child) void this.start();
  }

  /** False when it is frozen already. */
  freeze(): boolean {
    if (this.frozen) return false;
    this.frozen = true;
    return this.child?.kill('SIGSTOP') ?? false;
  }

  thaw(): void {
    this.frozen = false;
    this.child?.kill('SIGCONT');
  }

  /** Asks the process to end, and waits until it has. */
  async stop(): Promise<void> {
    const { child } = this;
    await this.ready;
    this.ended = true;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGCONT');
    child.kill('SIGTERM');
    const timer = setTimeout(() => {
      this.options.onCrash(`${this.name} did not end when asked to`);
      child.kill('SIGKILL');
    }, STOP_MS);
    await gone;
    clearTimeout(timer);
  }

  /** Ends the process at once, for good. */
  destroy(): void {
    this.ended = true;
    this.child?.kill('SIGKILL');
  }
}
