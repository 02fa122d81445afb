#!/usr/bin/env node
// npm run services -- up|down|status|env [names]: progress on standard error, results on standard output.
import { down, env, serviceNames, status, up } from './index.mjs';

const USAGE = `Usage: npm run services -- COMMAND [${serviceNames.join('|')} ...]
  up              start these servers, all where none is named; what runs already is left as it is
  down            stop them and delete their data
  status [--json] what runs, and where
  env             shell lines that name them: eval "$(npm run --silent services -- env)"`;

const words = process.argv.slice(2);
const asJson = words.includes('--json');
const [command, ...rest] = words.filter((word) => word !== '--json');
const names = rest.length === 0 ? undefined : /** @type {import('./index.d.mts').ServiceName[]} */ (rest);

/** @type {Record<string, () => Promise<void>>} */
const commands = {
  async up() {
    const infos = await up(names);
    if (asJson) console.log(JSON.stringify(infos, null, 2));
  },
  async down() {
    if ((await down(names, { force: true })).length === 0) console.error('nothing of ours was running');
  },
  async status() {
    const all = await status();
    const shown = names ? all.filter(({ name }) => names.includes(name)) : all;
    if (asJson) console.log(JSON.stringify(shown, null, 2));
    else for (const { id, state, url, version, source, pid } of shown) console.log([id, state, url, version || '-', source, pid ?? '-'].join('\t'));
  },
  async env() {
    const variables = env(names);
    for (const [name, value] of Object.entries(variables)) console.log(`export ${name}=${quoted(value)}`);
    if (Object.keys(variables).length < (names?.length ?? 1)) {
      throw new Error('not all of these servers are running: start them with up');
    }
  },
};

/** @param {string} value */
const quoted = (value) => (/^[\w@%+=:,./-]*$/.test(value) ? value : `'${value.replaceAll("'", `'\\''`)}'`);

if (!Object.hasOwn(commands, command ?? '')) {
  console.error(USAGE);
  process.exitCode = 2;
} else {
  await commands[command]().catch((error) => {
    console.error(error.message);
    process.exitCode = 1;
  });
}
