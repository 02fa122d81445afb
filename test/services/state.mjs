// What is running: one small JSON file for each server, and a lock for each name so that two runs do not fight.
import { linkSync, readFileSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { folderInHome } from './home.mjs';
import { isAlive, ourselves } from './process.mjs';

/** @typedef {import('./process.mjs').ProcessId} ProcessId */
/** @typedef {{ node: number, voters: string }} Membership of a Kafka broker in a cluster that is there already */
/**
 * @typedef {object} ServerRecord
 * @property {string} id the name, or name and number of a private instance
 * @property {import('./index.d.mts').ServiceName} name
 * @property {'docker' | 'native'} source
 * @property {number} port
 * @property {number} [controllerPort] Kafka only
 * @property {Membership} [join] Kafka only
 * @property {string} version
 * @property {Record<string, string>} settings
 * @property {ProcessId} [owner] the process that started a private instance; the instance is cleared when it is gone
 * @property {ProcessId[]} [users] the processes that asked for a shared one
 * @property {string} [project] the Compose project
 * @property {string} [dir] everything of a native server: data, log, configuration
 * @property {boolean} [initialised]
 * @property {number} [pid]
 * @property {string} [startTime]
 */
/**
 * What starting a server is told.
 * @typedef {object} StartOptions
 * @property {string} id
 * @property {(line: string) => void} say
 * @property {Record<string, string>} [settings]
 * @property {Membership} [join] for Kafka: the cluster that it joins
 * @property {ProcessId} [owner]
 * @property {ServerRecord} [previous] what is remembered of it
 */

/** @param {string} id */
const fileOf = (id) => join(folderInHome('state'), `${id}.json`);

/** @param {string} id @returns {ServerRecord | undefined} */
export function readRecord(id) {
  try {
    return JSON.parse(readFileSync(fileOf(id), 'utf8'));
  } catch {
    return undefined;
  }
}

/** @param {ServerRecord} record */
export function writeRecord(record) {
  writeAtomically(fileOf(record.id), JSON.stringify(record, null, 2));
}

/** @param {string} id */
export function removeRecord(id) {
  rmSync(fileOf(id), { force: true });
}

/** @returns {ServerRecord[]} */
export function allRecords() {
  return readdirSync(folderInHome('state'))
    .filter((file) => file.endsWith('.json'))
    .flatMap((file) => readRecord(file.slice(0, -'.json'.length)) ?? []);
}

/** @param {string} file @param {string} text */
export function writeAtomically(file, text) {
  const temporary = `${file}.${process.pid}.tmp`;
  writeFileSync(temporary, text);
  renameSync(temporary, file);
}

/**
 * Holds the lock of this name while `work` runs. The lock of a process that is gone is taken over.
 * @template T
 * @param {string} name @param {() => Promise<T>} work @param {(line: string) => void} [say]
 * @returns {Promise<T>}
 */
export async function withLock(name, work, say = () => {}) {
  const lock = join(folderInHome('locks'), `${name}.lock`);
  const deadline = Date.now() + 15 * 60_000;
  for (let told = false; !tryLock(lock); await sleep(100)) {
    const holder = readHolder(lock);
    if (holder && !isAlive(holder)) takeOver(lock);
    else if (Date.now() > deadline) throw new Error(`${lock} is still held by process ${holder?.pid}`);
    else if (!told && holder) {
      say(`waiting for process ${holder.pid}, which is at it too …`);
      told = true;
    }
  }
  try {
    return await work();
  } finally {
    rmSync(lock, { force: true });
  }
}

/** @param {string} lock */
function tryLock(lock) {
  const temporary = `${lock}.${process.pid}.${Math.random().toString(36).slice(2)}`;
  writeFileSync(temporary, JSON.stringify(ourselves()));
  try {
    linkSync(temporary, lock); // appears with its content, or fails because it is there
    return true;
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code === 'EEXIST') return false;
    throw error;
  } finally {
    rmSync(temporary, { force: true });
  }
}

/** @param {string} lock @returns {ProcessId | undefined} */
function readHolder(lock) {
  try {
    return JSON.parse(readFileSync(lock, 'utf8'));
  } catch {
    return undefined;
  }
}

/**
 * Removes a dead holder's lock, one process at a time: else a slow one would remove the next holder's.
 * @param {string} lock
 */
function takeOver(lock) {
  const guard = `${lock}.takeover`;
  if (!tryLock(guard)) {
    if (ageMs(guard) > 10_000) rmSync(guard, { force: true });
    return;
  }
  try {
    const holder = readHolder(lock);
    if (holder && !isAlive(holder)) rmSync(lock, { force: true });
  } finally {
    rmSync(guard, { force: true });
  }
}

/** @param {string} file */
function ageMs(file) {
  try {
    return Date.now() - statSync(file).mtimeMs;
  } catch {
    return 0;
  }
}
