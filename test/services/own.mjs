// Private instances, whose owner may stop, freeze and kill them.
import { randomBytes } from 'node:crypto';
import { clearDocker, hasDocker, signalDocker, startDocker, stopDocker } from './docker.mjs';
import { clearNative, startNative, stopNative } from './native.mjs';
import { ourselves, signalProcess, waitUntilGone } from './process.mjs';
import { infoOf, named } from './services.mjs';
import { readRecord } from './state.mjs';

/** @typedef {import('./process.mjs').ProcessId} ProcessId */

/**
 * @param {string} name @param {import('./index.d.mts').OwnOptions} [options]
 * @returns {Promise<import('./index.d.mts').OwnServer>}
 */
export async function startOwn(name, { settings, log = () => {} } = {}) {
  const [service] = named([name]);
  const id = `${name}-${randomBytes(4).toString('hex')}`;
  const inDocker = await hasDocker();
  const start = (/** @type {import('./state.mjs').ServerRecord | undefined} */ previous) =>
    (inDocker ? startDocker : startNative)(service, { id, settings, owner: ourselves(), previous, say: (line) => log(`${id}: ${line}`) });
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
