// Servers from Docker Compose, where an engine answers.
import { fileURLToPath } from 'node:url';
import { isFree, freePort } from './ports.mjs';
import { run } from './process.mjs';
import { removeRecord, withLock, writeRecord } from './state.mjs';
import { untilReady } from './native.mjs';

/** @typedef {import('./native.mjs').Service} Service */
/** @typedef {import('./state.mjs').ServerRecord} ServerRecord */

const PROJECT = 'nestjs-transactional-outbox';
const FILE = fileURLToPath(new URL('./compose.yaml', import.meta.url));

/** @type {Promise<boolean> | undefined} */
let answer;

/** Whether an engine answers and Compose is there: asked once. */
export function hasDocker() {
  answer ??= Promise.all([
    run('docker', ['info', '--format', '{{.ServerVersion}}'], { timeoutMs: 5_000 }),
    run('docker', ['compose', 'version'], { timeoutMs: 5_000 }),
  ]).then(([version]) => version.trim() !== '', () => false);
  return answer;
}

/**
 * @param {Service} service
 * @param {import('./state.mjs').StartOptions} options
 * @returns {Promise<ServerRecord>}
 */
export async function startDocker(service, { id, say, settings = {}, owner, previous }) {
  const project = id === service.name ? PROJECT : `${PROJECT}-${id}`;
  const keepsPort = previous?.source === 'docker';
  const port = keepsPort ? previous.port : await freePort();
  /** @type {ServerRecord} */
  const record = { id, name: service.name, source: 'docker', project, port, version: '', settings, owner };
  writeRecord(record);
  if (!keepsPort && !(await isFree(port))) throw new Error(`port ${port} was taken in the meantime`);
  say('starting with Docker Compose …');
  try {
    await compose(record, ['up', '--detach', '--wait', service.name]);
  } catch (error) {
    const log = await compose(record, ['logs', '--tail', '25', service.name]).catch(() => '');
    throw new Error(`${/** @type {Error} */ (error).message}\n${log}`, { cause: error });
  }
  record.version = await untilReady(service, record, 30_000);
  writeRecord(record);
  return record;
}

/**
 * STOP and CONT reach every process of the container, as pausing does.
 * @param {ServerRecord} record @param {NodeJS.Signals} signal
 */
export async function signalDocker(record, signal) {
  if (signal === 'SIGSTOP') await compose(record, ['pause', record.name]);
  else if (signal === 'SIGCONT') await compose(record, ['unpause', record.name]);
  else await compose(record, ['kill', '--signal', signal, record.name]);
}

/** A paused container can neither be stopped nor removed. @param {ServerRecord} record */
const thaw = (record) => signalDocker(record, 'SIGCONT').catch(() => {});

/** @param {ServerRecord} record */
export async function stopDocker(record) {
  await thaw(record);
  await compose(record, ['stop', '--timeout', '15', record.name]);
}

/** @param {ServerRecord} record */
export async function clearDocker(record) {
  await thaw(record);
  await compose(record, record.project === PROJECT ? ['rm', '--stop', '--force', '--volumes', record.name] : ['down', '--volumes']);
  removeRecord(record.id);
}

/** One at a time: two at once would both create the project's network. @param {ServerRecord} record @param {string[]} args */
function compose({ name, project, port, settings }, args) {
  const variable = `OUTBOX_${name.toUpperCase()}`;
  const env = { [`${variable}_PORT`]: String(port), [`${variable}_SETTINGS`]: options(name, settings) };
  const overlay = { services: { [name]: name === 'kafka' ? { environment: kafkaVariables(settings) } : {} } };
  return withLock('docker', () => run(
    'docker',
    ['compose', '--project-name', /** @type {string} */ (project), '--file', FILE, '--file', '-', ...args],
    { env, input: JSON.stringify(overlay) },
  ));
}

/** @param {string} name @param {Record<string, string>} settings */
function options(name, settings) {
  const each = Object.entries(settings);
  if (name === 'postgres') return each.map(([key, value]) => `-c '${key}=${value}'`).join(' ');
  if (name === 'redis') return each.map(([key, value]) => `--${key} '${value}'`).join(' ');
  return each.map(([key, value]) => `'--${key}=${value}'`).join(' ');
}

/** @param {Record<string, string>} settings */
function kafkaVariables(settings) {
  return Object.fromEntries(Object.entries(settings).map(([key, value]) => [`KAFKA_${key.toUpperCase().replaceAll('.', '_')}`, value]));
}
