import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';
import { until } from './fixture';
import type { ChildSetup } from './relay-child';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Makes one JavaScript file of the child and the library's source, so that no old build is tested. */
export async function buildChild(): Promise<{ readonly file: string; remove(): Promise<void> }> {
  // Inside the repository: the child must find its packages.
  const outDir = await mkdtemp(join(ROOT, 'node_modules', '.relay-child-'));
  await build({
    root: ROOT,
    configFile: false,
    logLevel: 'error',
    build: { ssr: fileURLToPath(new URL('relay-child.ts', import.meta.url)), outDir, emptyOutDir: false, rollupOptions: { output: { entryFileNames: 'child.mjs' } } },
    oxc: { decorator: { legacy: true, emitDecoratorMetadata: true } },
  });
  return { file: join(outDir, 'child.mjs'), remove: () => rm(outDir, { recursive: true, force: true }) };
}

export class RelayChild {
  readonly lines: string[] = [];
  private readonly process: ChildProcess;

  constructor(file: string, setup: ChildSetup) {
    this.process = spawn(process.execPath, [file], { env: { ...process.env, RELAY_CHILD: JSON.stringify(setup) }, stdio: ['ignore', 'pipe', 'inherit'] });
    let rest = '';
    this.process.stdout?.on('data', (chunk: Buffer) => {
      const parts = (rest + chunk.toString()).split('\n');
      rest = parts.pop() ?? '';
      this.lines.push(...parts);
    });
  }

  saw(start: string): boolean {
    return this.lines.some((line) => line.startsWith(start));
  }

  /** What stands behind the start of such lines. */
  told(start: string): string[] {
    return this.lines.filter((line) => line.startsWith(start)).map((line) => line.slice(start.length));
  }

  async sees(start: string): Promise<void> {
    await until(() => this.saw(start));
  }

  signal(signal: NodeJS.Signals): void {
    this.process.kill(signal);
  }

  async end(): Promise<void> {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return;
    const exited = new Promise((resolve) => this.process.once('exit', resolve));
    this.process.kill('SIGCONT');
    this.process.kill('SIGKILL');
    await exited;
  }
}
