// Private instances, whose owner may stop, freeze and kill them.
import { randomBytes } from 'node:crypto';
import { clearDocker, hasDocker, signalDocker, startDocker, stopDocker } from './docker.mjs';
import { clearNative, startNative, stopNative } from './native.mjs';
import { ourselves, signalProcess, waitUntilGone } from './process.mjs';
import { kafka } from './kafka.mjs';
import { older } from './older.mjs';
import { infoOf, named } from './services.mjs';
import { readRecord } from './state.mjs';

/** @typedef {import('./process.mjs').ProcessId} ProcessId */
/** @typedef {import('./index.d.mts').OwnServer} OwnServer */

/** @param {string} name @param {import('./index.d.mts').OwnOptions} [options] */
export async function startOwn(name, options = {}) {
  const isOlder = name in older;
  const [service] = isOlder ? [older[/** @type {keyof typeof older} */ (name)]] : named([name]);
  return own(service, options, !isOlder && (await hasDocker()));
}

/** @param {import('./index.d.mts').OwnClusterOptions} [options] @returns {Promise<import('./index.d.mts').OwnCluster>} */
export async function startOwnCluster({ brokers: count = 2, settings, log } = {}) {
  const copies = String(count + 1);
  const all = {
    'default.replication.factor': copies,
    'offsets.topic.replication.factor': copies,
    'transaction.state.log.replication.factor': copies,
    ...settings,
  };
  const first = await own(kafka, { settings: all, log }, false);
  const voters = `1@${first.info.host}:${first.controllerPort}`;
  const nodes = Array.from({ length: count }, (_, index) => index + 2);
  const started = await Promise.allSettled(nodes.map((node) => own(kafka, { settings: all, log, join: { node, voters } }, false)));
  const brokers = started.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  const remove = async () => {
    await Promise.all([...brokers, first].map((one) => one.remove()));
  };
  for (const one of started) {
    if (one.status === 'fulfilled') continue;
    await remove();
    throw one.reason;
  }
  return {
    addresses: [first, ...brokers].map(({ info }) => info.url),
    nodes,
    broker(node) {
      const found = brokers[nodes.indexOf(node)];
      if (!found) throw new Error(`the cluster has no broker ${node} that may be killed, only ${nodes.join(', ')}`);
      return found;
    },
    remove,
  };
}

/**
 * @param {import('./native.mjs').Service} service
 * @param {import('./index.d.mts').OwnOptions & { join?: import('./state.mjs').Membership }} options
 * @param {boolean} inDocker
 * @returns {Promise<OwnServer & { readonly controllerPort: number | undefined }>}
 */
async function own(service, { settings, join, log = () => {} }, inDocker) {
  const id = `${service.name}-${randomBytes(4).toString('hex')}`;
  const start = (/** @type {import('./state.mjs').ServerRecord | undefined} */ previous) =>
    (inDocker ? startDocker : startNative)(service, { id, settings, join, owner: ourselves(), previous, say: (line) => log(`${id}: ${line}`) });
  const clear = (/** @type {import('./state.mjs').ServerRecord} */ one) => (inDocker ? clearDocker(one) : clearNative(service, one));
  let record = await start(undefined).catch(async (error) => {
    const failed = readRecord(id);
    if (failed) await clear(failed).catch(() => {});
    throw error;
  });
  const stop = () => (inDocker ? stopDocker(record) : stopNative(service, record));
  return {
    get info() { return infoOf(record); },
    get pid() { return record.pid; },
    get controllerPort() { return record.controllerPort; },
    stop,
    async kill(signal = 'SIGKILL') {
      if (inDocker) return signalDocker(record, signal);
      signalProcess(/** @type {ProcessId} */ (record), signal);
      if (signal === 'SIGKILL') await waitUntilGone(record, 10_000);
    },
    async restart() {
      await stop();
      record = await start(record);
    },
    remove: () => clear(record),
  };
}
