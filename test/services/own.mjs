// Private instances, whose owner may stop, freeze and kill them.
import { randomBytes } from 'node:crypto';
import { clearDocker, hasDocker, signalDocker, startDocker, stopDocker } from './docker.mjs';
import { clearNative, startNative, stopNative } from './native.mjs';
import { ourselves, signalProcess, waitUntilGone } from './process.mjs';
import { infoOf, named } from './services.mjs';

/** @typedef {import('./process.mjs').ProcessId} ProcessId */

/**
 * @param {string} name @param {import('./index.d.mts').OwnOptions} [options]
 * @returns {Promise<import('./index.d.mts').OwnServer>}
 */
export async function startOwn(name, { settings, log = () => {} } = {}) {
  const [service] = named([name]);
  const id = `${name}-${randomBytes(4).toString('hex')}`;
  const inDocker = await hasDocker();
  const start = (/** @type {import('./state.mjs').ServerRecord} */ previous) =>
    (inDocker ? startDocker : startNative)(service, { id, settings, owner: ourselves(), previous, say: (line) => log(`${id}: ${line}`) });
  let record = await start(/** @type {any} */ (undefined));
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
    remove: () => (inDocker ? clearDocker(record) : clearNative(service, record)),
  };
}
