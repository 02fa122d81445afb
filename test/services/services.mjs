// The servers by name, and what callers are told about one.
import { askTcp } from './ask.mjs';
import { kafka } from './kafka.mjs';
import { mariadb } from './mariadb.mjs';
import { mysql } from './mysql.mjs';
import { dataDirOf, HOST } from './native.mjs';
import { postgres } from './postgres.mjs';
import { redis } from './redis.mjs';

/** @typedef {import('./index.d.mts').ServiceInfo} ServiceInfo */
/** @typedef {import('./index.d.mts').ServiceName} ServiceName */
/** @typedef {import('./native.mjs').Service} Service */

export const services = { mysql, mariadb, postgres, kafka, redis };
export const serviceNames = /** @type {ServiceName[]} */ (Object.keys(services));

/** @param {readonly string[]} [names] @returns {Service[]} all where nothing is said */
export function named(names = serviceNames) {
  const unknown = names.filter((name) => !Object.hasOwn(services, name));
  if (unknown.length > 0) throw new Error(`no such server: ${unknown.join(', ')}; there are ${serviceNames.join(', ')}`);
  return [...new Set(/** @type {ServiceName[]} */ (names))].map((name) => services[name]);
}

/** @param {import('./state.mjs').ServerRecord} record @returns {ServiceInfo} */
export function infoOf({ name, source, port, version, pid, dir }) {
  const { scheme, user, database } = services[name];
  const url = scheme === '' ? `${HOST}:${port}` : `${scheme}://${user && `${user}@`}${HOST}:${port}${database && `/${database}`}`;
  return {
    name, source, host: HOST, port, user, password: '', database, url, version,
    ...(pid !== undefined && { pid }),
    ...(dir !== undefined && { dataDir: dataDirOf(dir) }),
    ...(name === 'kafka' && { brokers: [`${HOST}:${port}`] }),
  };
}

/** What the environment gives, if anything. @param {Service} service @returns {ServiceInfo | undefined} */
export function givenInfo({ name, variable, scheme, defaultPort }) {
  const url = process.env[variable]?.trim();
  if (!url) return undefined;
  const brokers = url.split(',').map((broker) => broker.trim());
  try {
    const parsed = new URL(scheme === '' ? `tcp://${brokers[0]}` : url);
    if (parsed.hostname === '') throw new Error('it names no host');
    return {
      name, source: 'environment', url, version: '',
      host: parsed.hostname.replace(/^\[|\]$/g, ''),
      port: Number(parsed.port || defaultPort),
      user: decodeURIComponent(parsed.username),
      password: decodeURIComponent(parsed.password),
      database: decodeURIComponent(parsed.pathname.replace(/^\//, '')),
      ...(name === 'kafka' && { brokers }),
    };
  } catch (error) {
    throw new Error(`${variable} cannot be read: ${/** @type {Error} */ (error).message}`, { cause: error });
  }
}

/** @param {Service} service @param {ServiceInfo} info @returns {Promise<ServiceInfo>} */
export async function checkGiven(service, info) {
  try {
    await askTcp(info);
  } catch (error) {
    throw new Error(`${service.variable} names ${info.host}:${info.port}, where nothing answers (${/** @type {Error} */ (error).message})`, { cause: error });
  }
  // With a password our small conversations get no further: that it accepts connections must do.
  const version = info.password === '' ? await service.ready(info).catch(() => '') : '';
  return { ...info, version };
}
