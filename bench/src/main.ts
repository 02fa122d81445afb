import 'reflect-metadata';
import { parseArgs } from 'node:util';
import { benchEnqueue } from './enqueue.js';
import { SERVERS, type ServerName } from './server.js';

/** Each bench measures a reference in the same run; its result is one JSON object. */
const BENCHES = { enqueue: benchEnqueue } as const;

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { db: { type: 'string', default: 'mysql' }, smoke: { type: 'boolean', default: false } },
});
const [name = ''] = positionals;
if (!Object.hasOwn(BENCHES, name) || !SERVERS.includes(values.db as ServerName)) {
  console.error(`Usage: npm run bench -- ${Object.keys(BENCHES).join('|')} [--db ${SERVERS.join('|')}] [--smoke]`);
  process.exit(2);
}
const result = await BENCHES[name as keyof typeof BENCHES](values.db as ServerName, values.smoke);
console.log(JSON.stringify({ bench: name, db: values.db, node: process.version, ...result }));
