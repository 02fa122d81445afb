import { spawn } from 'node:child_process';

export interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** Command, exit code and all output, for the message of an assertion. */
  readonly report: string;
}

/** What a test runner and npm tell the processes that they start must not reach an app that is on its own. */
const OWN_TO_THIS_RUN = /^(?:VITEST|TEST$|NODE_ENV$|NODE_OPTIONS$|INIT_CWD$|npm_(?:package|lifecycle|config_local_prefix))/;

/** Runs a command to its end, in its own folder and with a fresh environment. */
export function run(cwd: string, command: string, ...args: string[]): Promise<Ran> {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !OWN_TO_THIS_RUN.test(name)));
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd, env: { ...env, NO_COLOR: '1' }, stdio: ['ignore', 'pipe', 'pipe'] });
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
    child.on('error', reject);
    child.on('close', (code) => {
      const report = [`${command} ${args.join(' ')}: exit code ${code}`, stdout, stderr].join('\n');
      resolve({ code, stdout, stderr, report });
    });
  });
}
