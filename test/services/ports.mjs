// Free ports, outside the range from which systems give ports to outgoing connections.
import { createServer } from 'node:net';

const LOWEST = 20_000;
const HIGHEST = 32_000;

export async function freePort() {
  for (let attempt = 0; attempt < 200; attempt++) {
    const port = LOWEST + Math.floor(Math.random() * (HIGHEST - LOWEST));
    if (await isFree(port)) return port;
  }
  throw new Error(`no free port between ${LOWEST} and ${HIGHEST}`);
}

/** @param {number} port @returns {Promise<boolean>} */
export function isFree(port) {
  return new Promise((done) => {
    const server = createServer();
    server.once('error', () => done(false));
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => server.close(() => done(true)));
  });
}
