// Readies the folder for `npm pack` and `npm publish`, after the build: what the build has left from sources that are
// gone is removed, and the files that stand at the top of the repository are copied.
import { copyFileSync, existsSync, readdirSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

for (const file of readdirSync(here('dist'), { recursive: true })) {
  const source = /^(.+?)\.(?:js|js\.map|d\.ts)$/.exec(file)?.[1];
  if (source !== undefined && !existsSync(here(`src/${source}.ts`))) rmSync(here(`dist/${file}`));
}
for (const file of ['README.md', 'LICENSE']) copyFileSync(here(`../../${file}`), here(file));
