import { down, env, type ServiceName, up } from '../services/index.mjs';

const NEEDED: ServiceName[] = ['mysql', 'mariadb', 'postgres', 'kafka', 'redis'];

/** Starts the servers that the tests need and are not there yet; afterwards stops those that it started. */
export async function setup(): Promise<() => Promise<void>> {
  const { started } = await up(NEEDED);
  // The test processes inherit these.
  Object.assign(process.env, env(NEEDED));
  return async () => {
    await down(started);
  };
}
