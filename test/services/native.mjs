// The life of a native server: a place of its own, initialised once, started, asked until it answers, stopped, cleared away.
import { chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { folderInServersHome } from './home.mjs';
import { freePort, isFree } from './ports.mjs';
import { accountFor, isAlive, lastLines, launch, stopProcess } from './process.mjs';
import { removeRecord, writeRecord } from './state.mjs';

/** @typedef {import('./state.mjs').ServerRecord} ServerRecord */
/** @typedef {{ command: string, args: string[], env?: Record<string, string>, version?: string }} Program how to run the server's binary */
/** @typedef {{ host: string, port: number, user: string, database: string }} Address */
/**
 * @typedef {object} Place
 * @property {string} dir configuration and log
 * @property {string} dataDir
 * @property {number} port
 * @property {number} [controllerPort]
 * @property {Record<string, string>} settings
 * @property {import('./process.mjs').Account} [account]
 */
/**
 * What every kind of server says about itself.
 * @typedef {object} Service
 * @property {import('./index.d.mts').ServiceName} name
 * @property {string} variable the environment variable that gives one
 * @property {string} scheme of its URL; none for Kafka, whose clients take host:port
 * @property {string} user
 * @property {string} database
 * @property {number} defaultPort
 * @property {string[]} runAs the accounts that root hands over to; none: stay as we are
 * @property {NodeJS.Signals} stopSignal
 * @property {(address: Address) => Promise<string>} ready answers a query, with its version where it tells; else rejects
 * @property {(say: (line: string) => void) => Promise<Program>} prepare finds or downloads the program
 * @property {(program: Program, place: Place) => Promise<void>} initialise fills the data folder
 * @property {(program: Program, place: Place) => { command: string, args: string[], env?: Record<string, string> }} start
 */

const START_MS = 90_000;
const ATTEMPTS = 3;
export const HOST = '127.0.0.1';

/**
 * Starts a server in a new place, or again in the place that it had.
 * @param {Service} service
 * @param {{ id: string, say: (line: string) => void, settings?: Record<string, string>, owner?: ServerRecord['owner'], previous?: ServerRecord }} options
 * @returns {Promise<ServerRecord>}
 */
export async function startNative(service, { id, say, settings = {}, owner, previous }) {
  const program = await service.prepare(say);
  for (let attempt = 1; ; attempt++) {
    const usable = previous?.initialised && previous.dir && existsSync(previous.dir) && (await isFree(previous.port));
    if (previous && !usable) await clearNative(service, previous);
    const record = usable ? /** @type {ServerRecord} */ (previous) : await newPlace(service, { id, settings, owner, program });
    try {
      if (!record.initialised) {
        await service.initialise(program, placeOf(service, record));
        record.initialised = true;
        writeRecord(record);
      }
      await startInPlace(service, record, program);
      return record;
    } catch (error) {
      await stopNative(service, record);
      if (attempt === ATTEMPTS || !isWorthAnotherTry(error, record, previous)) throw error;
      say('could not start, trying once more in a new place …');
      previous = record;
      previous.initialised = false;
    }
  }
}

/**
 * @param {Service} service
 * @param {Pick<ServerRecord, 'id' | 'settings' | 'owner'> & { program: Program }} of
 * @returns {Promise<ServerRecord>}
 */
async function newPlace(service, { id, settings, owner, program }) {
  const dir = mkdtempSync(join(folderInServersHome('data'), `${id}-`));
  /** @type {ServerRecord} */
  const record = { id, name: service.name, source: 'native', port: await freePort(), version: program.version ?? '', settings, owner, dir, initialised: false };
  if (service.name === 'kafka') record.controllerPort = await freePort();
  writeRecord(record); // before anything is there: a killed run leaves nothing unknown behind
  const { dataDir, account } = placeOf(service, record);
  mkdirSync(dataDir, { mode: 0o700 });
  if (account) for (const folder of [dir, dataDir]) chownSync(folder, account.uid, account.gid);
  return record;
}

/** @param {Service} service @param {ServerRecord} record @returns {Place} */
function placeOf(service, { dir, port, controllerPort, settings }) {
  const account = service.runAs.length > 0 ? accountFor(service.runAs) : undefined;
  return { dir: /** @type {string} */ (dir), dataDir: dataDirOf(/** @type {string} */ (dir)), port, controllerPort, settings, account };
}

/** @param {string} dir */
export const dataDirOf = (dir) => join(dir, 'data');

/** @param {Service} service @param {ServerRecord} record @param {Program} program */
async function startInPlace(service, record, program) {
  const place = placeOf(service, record);
  const log = join(place.dir, 'server.log');
  const { pid, startTime } = await launch(service.start(program, place), { cwd: place.dir, log, runAs: place.account });
  Object.assign(record, { pid, startTime });
  writeRecord(record);
  record.version = (await untilReady(service, record, START_MS)) || record.version;
  writeRecord(record);
}

/**
 * @param {Service} service @param {ServerRecord} record @param {number} patienceMs
 * @returns {Promise<string>} the version, where the server tells
 */
export async function untilReady(service, record, patienceMs) {
  const deadline = Date.now() + patienceMs;
  for (;;) {
    try {
      return await service.ready({ host: HOST, port: record.port, user: service.user, database: service.database });
    } catch (error) {
      const died = record.source === 'native' && !isAlive(record);
      if (died || Date.now() > deadline) {
        const what = died ? 'the server ended before it was ready' : `no answer after ${patienceMs / 1000} s (${/** @type {Error} */ (error).message})`;
        throw new Error(`${what}; the end of its log:\n${logTail(record)}`);
      }
      await sleep(50);
    }
  }
}

/** @param {ServerRecord} record */
function logTail({ dir }) {
  try {
    return lastLines(readFileSync(join(/** @type {string} */ (dir), 'server.log'), 'utf8'));
  } catch {
    return '  | (no log)';
  }
}

/** @param {unknown} error @param {ServerRecord} record @param {ServerRecord | undefined} previous */
function isWorthAnotherTry(error, record, previous) {
  return record === previous || /address already in use|Address in use|Do you already have another/i.test(String(error));
}

/** @param {Service} service @param {ServerRecord} record */
export async function stopNative(service, record) {
  if (isAlive(record)) await stopProcess(/** @type {import('./process.mjs').ProcessId} */ (record), service.stopSignal);
}

/** Stops, and deletes the data, never the downloads. @param {Service} service @param {ServerRecord} record */
export async function clearNative(service, record) {
  await stopNative(service, record);
  if (record.dir) rmSync(record.dir, { recursive: true, force: true, maxRetries: 5 });
  removeRecord(record.id);
}
