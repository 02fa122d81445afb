// Processes: find programs and accounts, run to the end, launch detached, tell alive from dead, signal, stop.
import { execFileSync, spawn } from 'node:child_process';
import { accessSync, closeSync, constants, openSync, readFileSync, readdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isRoot } from './home.mjs';

/** @typedef {{ user: string, uid: number, gid: number }} Account */
/** @typedef {{ pid: number, startTime: string }} ProcessId a pid alone may have been given to another process since */

const USUAL_FOLDERS = ['/usr/local/sbin', '/usr/sbin', '/sbin', '/usr/local/bin', '/usr/bin', '/opt/homebrew/bin'];

/**
 * Looks in the given folders, in PATH, and where servers usually lie.
 * @param {string} name @param {string[]} [firstIn]
 */
export function findProgram(name, firstIn = []) {
  const path = (process.env.PATH ?? '').split(delimiter).filter(Boolean);
  return [...firstIn, ...path, ...USUAL_FOLDERS].map((folder) => join(folder, name)).find((file) => {
    try {
      accessSync(file, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/**
 * Database servers refuse to run as root: the first account that exists takes over. Anyone else runs as himself.
 * @param {string[]} users @returns {Account | undefined}
 */
export function accountFor(users) {
  if (!isRoot) return undefined;
  const entries = readFileSync('/etc/passwd', 'utf8').split('\n').map((line) => line.split(':'));
  for (const user of [...users, 'nobody']) {
    const entry = entries.find(([name]) => name === user);
    if (entry) return { user, uid: Number(entry[2]), gid: Number(entry[3]) };
  }
  throw new Error(`running as root, and none of the users ${users.join(', ')}, nobody exists to run the server as`);
}

/**
 * Runs a program to its end; rejects with the end of its output when it fails.
 * @param {string} command @param {string[]} args
 * @param {{ cwd?: string, env?: Record<string, string | undefined>, runAs?: Account, input?: string, timeoutMs?: number, started?: (id: ProcessId) => void }} [options]
 * @returns {Promise<string>} its standard output
 */
export function run(command, args, { cwd, env, runAs, input, timeoutMs = 600_000, started } = {}) {
  return new Promise((done, fail) => {
    const child = spawn(command, args, {
      cwd,
      env: { ...process.env, ...env },
      uid: runAs?.uid,
      gid: runAs?.gid,
      timeout: timeoutMs,
      killSignal: 'SIGKILL',
    });
    child.once('spawn', () => started?.(identify(child)));
    let stdout = '';
    let everything = '';
    child.stdout.on('data', (chunk) => { stdout += chunk; everything += chunk; });
    child.stderr.on('data', (chunk) => { everything += chunk; });
    child.on('error', fail);
    child.on('close', (code, signal) => {
      if (code === 0) return done(stdout);
      const how = signal ? `was ended by ${signal}` : `exited with code ${code}`;
      fail(new Error(`${command} ${how}:\n${lastLines(everything)}`));
    });
    child.stdin.on('error', () => {});
    child.stdin.end(input ?? '');
  });
}

/** @param {string} text @param {number} [count] */
export function lastLines(text, count = 25) {
  return text.trimEnd().split('\n').slice(-count).map((line) => `  | ${line}`).join('\n');
}

/**
 * Starts a server that outlives us, its output in a log file.
 * @param {{ command: string, args: string[], env?: Record<string, string | undefined> }} what
 * @param {{ cwd: string, log: string, runAs?: Account }} how
 * @returns {Promise<ProcessId>}
 */
export async function launch({ command, args, env }, { cwd, log, runAs }) {
  const output = openSync(log, 'a');
  try {
    const child = spawn(command, args, {
      cwd,
      env: { ...process.env, ...env },
      uid: runAs?.uid,
      gid: runAs?.gid,
      detached: true,
      stdio: ['ignore', output, output],
    });
    await new Promise((done, fail) => child.once('spawn', done).once('error', fail));
    child.unref();
    return identify(child);
  } finally {
    closeSync(output);
  }
}

/** @param {{ pid?: number }} of @returns {ProcessId} */
function identify({ pid = 0 }) {
  return { pid, startTime: look(pid)?.startTime ?? 'gone' };
}

export const ourselves = () => identify(process);

/** @param {Partial<ProcessId> | undefined} id */
export function isAlive(id) {
  if (!id?.pid) return false;
  const seen = look(id.pid);
  return seen !== undefined && !seen.zombie && seen.startTime === id.startTime;
}

/** @param {Partial<ProcessId> | undefined} id @param {number} timeoutMs */
export async function waitUntilGone(id, timeoutMs) {
  const deadline = Date.now() + timeoutMs;
  while (isAlive(id)) {
    if (Date.now() > deadline) return false;
    await sleep(30);
  }
  return true;
}

/**
 * Sends a signal; KILL, STOP and CONT go to the children too, as if it happened to the whole host.
 * @param {ProcessId} id @param {NodeJS.Signals} signal
 */
export function signalProcess(id, signal) {
  const all = ['SIGKILL', 'SIGSTOP', 'SIGCONT'].includes(signal) ? tree(id) : [id];
  for (const one of all) {
    if (!isAlive(one)) continue;
    try {
      process.kill(one.pid, signal);
    } catch (error) {
      if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'ESRCH') throw error;
    }
  }
}

/**
 * Asks politely, waits, then kills. Returns when the process and its children are gone.
 * @param {ProcessId} id @param {NodeJS.Signals} signal @param {number} [graceMs]
 */
export async function stopProcess(id, signal, graceMs = 15_000) {
  const all = tree(id);
  signalProcess(id, signal);
  signalProcess(id, 'SIGCONT'); // a stopped process would never see the first signal
  if (!(await waitUntilGone(id, graceMs))) signalProcess(id, 'SIGKILL');
  for (const one of all) {
    if (!(await waitUntilGone(one, 5_000))) signalProcess(one, 'SIGKILL');
  }
}

/** @param {ProcessId} id @returns {ProcessId[]} the process and its descendants, parents first */
function tree(id) {
  const found = isAlive(id) ? [id] : [];
  const others = allProcesses();
  for (const parent of found) {
    for (const one of others) {
      if (one.parent === parent.pid) found.push({ pid: one.pid, startTime: one.startTime });
    }
  }
  return found;
}

/** @typedef {{ pid: number, parent: number, zombie: boolean, startTime: string }} Seen */

/** @param {number} pid @returns {Seen | undefined} */
function look(pid) {
  if (process.platform !== 'linux') return allProcesses().find((one) => one.pid === pid);
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return { pid, parent: Number(fields[1]), zombie: 'ZX'.includes(fields[0]), startTime: `${bootId()}:${fields[19]}` };
  } catch {
    return undefined;
  }
}

/** @returns {Seen[]} */
function allProcesses() {
  if (process.platform === 'linux') {
    return readdirSync('/proc').filter((name) => /^\d+$/.test(name)).flatMap((name) => look(Number(name)) ?? []);
  }
  const lines = execFileSync('ps', ['-axo', 'pid=,ppid=,stat=,lstart='], { encoding: 'utf8' }).trim().split('\n');
  return lines.map((line) => {
    const [pid, parent, state, ...started] = line.trim().split(/\s+/);
    return { pid: Number(pid), parent: Number(parent), zombie: state.startsWith('Z'), startTime: started.join(' ') };
  });
}

function bootId() {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return '';
  }
}
