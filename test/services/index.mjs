// Real servers on demand: from the environment, else from Docker Compose, else native.
import { clearDocker, hasDocker, startDocker } from './docker.mjs';
import { kafka } from './kafka.mjs';
import { clearNative, startNative, untilReady } from './native.mjs';
import { isAlive, ourselves } from './process.mjs';
import { checkGiven, givenInfo, infoOf, named, services } from './services.mjs';
import { allRecords, readRecord, withLock, writeRecord } from './state.mjs';

export { startOwn, startOwnCluster } from './own.mjs';
export { promtool } from './promtool.mjs';
export { serviceNames } from './services.mjs';

/** @typedef {import('./index.d.mts').ServiceInfo} ServiceInfo */
/** @typedef {import('./index.d.mts').ServiceName} ServiceName */
/** @typedef {import('./index.d.mts').ServiceStatus} ServiceStatus */
/** @typedef {import('./native.mjs').Service} Service */
/** @typedef {import('./state.mjs').ServerRecord} ServerRecord */

/** How long a running server may keep silent before it counts as broken. */
const PATIENCE_MS = 10_000;

/** @param {string} line */
const toStandardError = (line) => process.stderr.write(`${line}\n`);

/** @param {(line: string) => void} log @param {string} name @returns {(line: string) => void} */
export const teller = (log = toStandardError, name) => (line) => log(`${name}: ${line}`);

export class UpError extends Error {
  name = 'UpError';

  /** @param {Partial<Record<ServiceName, Error>>} errors @param {ServiceName[]} started */
  constructor(errors, started) {
    super(Object.entries(errors).map(([name, error]) => `${name}: ${error.message}`).join('\n'));
    this.errors = errors;
    this.started = started;
  }
}

/** @param {readonly string[]} [names] @param {import('./index.d.mts').UpOptions} [options] */
export async function up(names, { log } = {}) {
  const wanted = named(names);
  await clearOrphans(log);
  /** @type {ServiceName[]} */
  const started = [];
  /** @type {Partial<Record<ServiceName, ServiceInfo>>} */
  const infos = {};
  /** @type {Partial<Record<ServiceName, Error>>} */
  const errors = {};
  await Promise.all(wanted.map(async (service) => {
    try {
      const { info, isNew } = await upOne(service, teller(log, service.name));
      infos[service.name] = info;
      if (isNew) started.push(service.name);
    } catch (error) {
      errors[service.name] = /** @type {Error} */ (error);
    }
  }));
  if (Object.keys(errors).length > 0) throw new UpError(errors, started);
  const inOrder = Object.fromEntries(wanted.map(({ name }) => [name, infos[name]]));
  return Object.defineProperty(inOrder, 'started', { value: started });
}

/** @param {Service} service @param {(line: string) => void} say */
async function upOne(service, say) {
  const begin = Date.now();
  const given = givenInfo(service);
  if (given) return { info: tell(await checkGiven(service, given)), isNew: false };
  return withLock(service.name, async () => {
    const previous = readRecord(service.name);
    const users = [...(previous?.users ?? []).filter(isAlive), ourselves()];
    const answer = previous && (await answerOf(service, previous, PATIENCE_MS));
    if (previous && answer) {
      const running = { ...previous, users, version: answer.version || previous.version };
      writeRecord(running);
      return { info: tell(infoOf(running)), isNew: false };
    }
    if (previous) say('is not running any more, starting it again …');
    const start = previous?.source !== 'native' && (await hasDocker()) ? startDocker : startNative;
    const record = await start(service, { id: service.name, say, previous });
    writeRecord({ ...record, users });
    return { info: tell(infoOf(record), `, ${((Date.now() - begin) / 1000).toFixed(1)} s`), isNew: true };
  }, say);

  /** @param {ServiceInfo} info */
  function tell(info, howLong = '') {
    say(`ready on ${info.host}:${info.port} (${[info.version, info.source].filter(Boolean).join(', ')}${howLong})`);
    return info;
  }
}

/** @param {Service} service @param {ServerRecord} record @param {number} patienceMs */
async function answerOf(service, record, patienceMs) {
  // A container that is still being started is for Compose to wait for.
  return untilReady(service, record, record.source === 'docker' ? 0 : patienceMs).then((version) => ({ version }), () => undefined);
}

/** @param {readonly string[]} [names] @param {import('./index.d.mts').DownOptions} [options] */
export async function down(names, { log, force = false } = {}) {
  const stopped = names ? [] : await clearOrphans(log);
  await Promise.all(named(names).map(({ name }) => withLock(name, async () => {
    const record = readRecord(name);
    if (!record) return;
    const user = force ? undefined : record.users?.find((one) => one.pid !== process.pid && isAlive(one));
    if (user) return teller(log, name)(`process ${user.pid} uses it too, left running`);
    await clear(record);
    teller(log, name)('stopped');
    stopped.push(name);
  }, teller(log, name))));
  return stopped;
}

/** Private instances whose owner is gone. @param {(line: string) => void} [log] @returns {Promise<string[]>} */
async function clearOrphans(log) {
  const orphans = allRecords().filter((record) => record.owner && !isAlive(record.owner));
  await Promise.all(orphans.map(async (record) => {
    teller(log, record.id)('its owner is gone, clearing it away …');
    await clear(record);
  }));
  return orphans.map(({ id }) => id);
}

/** @param {ServerRecord} record */
const clear = (record) => (record.source === 'docker' ? clearDocker(record) : clearNative(services[record.name], record));

export function status() {
  const given = named().flatMap((service) => givenInfo(service) ?? []);
  return Promise.all([...given.map(statusOfGiven), ...allRecords().map(statusOf)]);
}

/** @param {ServiceInfo} info @returns {Promise<ServiceStatus>} */
async function statusOfGiven(info) {
  const checked = await checkGiven(services[info.name], info).catch(() => undefined);
  return Object.assign(checked ?? info, { id: info.name, state: checked ? /** @type {const} */ ('ready') : /** @type {const} */ ('silent') });
}

/** @param {ServerRecord} record @returns {Promise<ServiceStatus>} */
async function statusOf(record) {
  const runs = record.source === 'docker' || isAlive(record);
  const state = (await answerOf(services[record.name], record, 0)) ? 'ready' : runs ? 'silent' : 'dead';
  return Object.assign(infoOf(record), { id: record.id, state, ...(record.owner && { ownerPid: record.owner.pid }) });
}

/** @param {readonly string[]} [names] @returns {Record<string, string>} */
export function env(names) {
  return Object.fromEntries(named(names).flatMap((service) => {
    const record = readRecord(service.name);
    const info = givenInfo(service) ?? (record && (record.source === 'docker' || isAlive(record)) ? infoOf(record) : undefined);
    return info ? [[service.variable, info.url]] : [];
  }));
}

/** Java with the class path of Kafka's own clients. */
export async function kafkaJava() {
  const { command, args } = await kafka.prepare(teller(undefined, 'kafka'));
  return { command, args };
}
