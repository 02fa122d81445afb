// The life of a native server: a place of its own, initialised once, started, asked until it answers, stopped, cleared away.
import { chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { folderInServersHome } from './home.mjs';
import { freePort, isFree } from './ports.mjs';
import { accountFor, isAlive, lastLines, launch, run, stopProcess } from './process.mjs';
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
 * @property {import('./state.mjs').Membership} [join]
 * @property {Record<string, string>} settings
 * @property {import('./process.mjs').Account} [account]
 * @property {(command: string, args: string[], options?: { env?: Record<string, string> | undefined, input?: string }) => Promise<string>} run
 *   runs a program as that account, remembered so that it can be ended when we are killed
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
 * @param {import('./state.mjs').StartOptions} options
 * @returns {Promise<ServerRecord>}
 */
export async function startNative(service, options) {
  const { previous, owner, say } = options;
  const program = await service.prepare(say);
  if (previous) {
    await stopNative(service, previous);
    const again = await startAgain(service, previous, program).catch((error) => {
      if (owner) throw error; // who owns an instance counts on its port and data
      say(`cannot be started again with its data, starting afresh … (${error.message})`);
    });
    if (again) return again;
    await clearNative(service, previous);
  }
  for (let attempt = 1; ; attempt++) {
    const record = await newPlace(service, options, program);
    try {
      await service.initialise(program, placeOf(service, record));
      record.initialised = true;
      return await startInPlace(service, record, program);
    } catch (error) {
      if (attempt === ATTEMPTS || !/address (is )?already in use|Do you already have another/i.test(String(error))) throw error;
      await clearNative(service, record);
    }
  }
}

/**
 * A killed server's child processes and port may take a moment to go: tries more than once.
 * @param {Service} service @param {ServerRecord} record @param {Program} program
 */
async function startAgain(service, record, program) {
  if (!record.initialised || !record.dir || !existsSync(record.dir)) return undefined;
  for (let attempt = 1; ; attempt++) {
    try {
      return await startInPlace(service, record, program);
    } catch (error) {
      if (attempt === ATTEMPTS) throw error;
      await sleep(1_000);
    }
  }
}

/**
 * @param {Service} service @param {import('./state.mjs').StartOptions} options @param {Program} program
 * @returns {Promise<ServerRecord>}
 */
async function newPlace(service, { id, settings = {}, join: membership, owner }, program) {
  const dir = mkdtempSync(join(folderInServersHome('data'), `${id}-`));
  /** @type {ServerRecord} */
  const record = { id, name: service.name, source: 'native', port: await freePort(), version: program.version ?? '', settings, join: membership, owner, dir, initialised: false };
  if (service.name === 'kafka') record.controllerPort = await freePort();
  writeRecord(record); // before anything is there: a killed run leaves nothing unknown behind
  const { dataDir, account } = placeOf(service, record);
  mkdirSync(dataDir, { mode: 0o700 });
  if (account) for (const folder of [dir, dataDir]) chownSync(folder, account.uid, account.gid);
  return record;
}

/** @param {Service} service @param {ServerRecord} record @returns {Place} */
function placeOf(service, record) {
  const { port, controllerPort, join: membership, settings } = record;
  const dir = /** @type {string} */ (record.dir);
  const account = service.runAs.length > 0 ? accountFor(service.runAs) : undefined;
  const started = (/** @type {import('./process.mjs').ProcessId} */ id) => writeRecord(Object.assign(record, id));
  return {
    dir, dataDir: dataDirOf(dir), port, controllerPort, join: membership, settings, account,
    run: (command, args, options) => run(command, args, { ...options, cwd: dir, runAs: account, started }),
  };
}

/** @param {string} dir */
export const dataDirOf = (dir) => join(dir, 'data');

/** @param {Service} service @param {ServerRecord} record @param {Program} program */
async function startInPlace(service, record, program) {
  const place = placeOf(service, record);
  if (!(await isFree(place.port))) throw new Error(`port ${place.port}: address already in use`);
  const log = join(place.dir, 'server.log');
  Object.assign(record, await launch(service.start(program, place), { cwd: place.dir, log, runAs: place.account }));
  writeRecord(record);
  try {
    record.version = (await untilReady(service, record, START_MS)) || record.version;
  } catch (error) {
    await stopNative(service, record);
    throw error;
  }
  writeRecord(record);
  return record;
}

/**
 * @param {Service} service @param {ServerRecord} record @param {number} patienceMs
 * @returns {Promise<string>} the version, where the server tells
 */
export async function untilReady(service, record, patienceMs) {
  const deadline = Date.now() + patienceMs;
  for (;;) {
    if (record.source === 'native' && !isAlive(record)) throw withLog('the server has ended', record);
    try {
      return await service.ready({ host: HOST, port: record.port, user: service.user, database: service.database });
    } catch (error) {
      if (Date.now() > deadline) throw withLog(`no answer after ${patienceMs / 1000} s (${/** @type {Error} */ (error).message})`, record);
    }
    await sleep(50);
  }
}

/** @param {string} what @param {ServerRecord} record */
function withLog(what, record) {
  return new Error(`${what}; the end of its log:\n${logTail(record)}`);
}

/** @param {ServerRecord} record */
function logTail({ dir }) {
  try {
    return lastLines(readFileSync(join(/** @type {string} */ (dir), 'server.log'), 'utf8'));
  } catch {
    return '  | (no log)';
  }
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
