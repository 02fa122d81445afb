// Downloads that are there in whole or not at all: filled in a temporary folder, listed, renamed, and checked at each use.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { folderInServersHome } from './home.mjs';
import { withLock } from './state.mjs';

const LIST = '.complete.json';

/**
 * The folder of this download, filled by `fill` when it is missing or damaged.
 * @param {string} name @param {(folder: string) => Promise<void>} fill @param {(line: string) => void} say
 */
export async function download(name, fill, say) {
  const folder = join(folderInServersHome('downloads'), name);
  if (isComplete(folder)) return folder;
  return withLock(`download-${name}`, async () => {
    if (isComplete(folder)) return folder;
    say(existsSync(folder) ? 'the download is damaged, downloading again …' : 'downloading (first time only) …');
    clearAbandoned(dirname(folder));
    const temporary = mkdtempSync(join(dirname(folder), `.${basename(folder)}-`));
    try {
      const filled = join(temporary, 'filled');
      mkdirSync(filled);
      await fill(filled);
      writeFileSync(join(filled, LIST), JSON.stringify(sizes(filled)));
      if (isComplete(folder)) return folder; // another home's run, which shares this folder but no lock with us
      rmSync(folder, { recursive: true, force: true });
      renameSync(filled, folder);
    } finally {
      rmSync(temporary, { recursive: true, force: true });
    }
    return folder;
  }, say);
}

/** What killed downloads left. @param {string} downloads */
function clearAbandoned(downloads) {
  for (const entry of readdirSync(downloads).filter((name) => name.startsWith('.'))) {
    const folder = join(downloads, entry);
    const seen = statSync(folder, { throwIfNoEntry: false });
    if (seen && Date.now() - seen.mtimeMs > 3_600_000) rmSync(folder, { recursive: true, force: true });
  }
}

/** @param {string} folder */
function isComplete(folder) {
  try {
    /** @type {Record<string, number>} */
    const listed = JSON.parse(readFileSync(join(folder, LIST), 'utf8'));
    return Object.entries(listed).every(([file, size]) => statSync(join(folder, file)).size === size);
  } catch {
    return false;
  }
}

/** @param {string} folder @returns {Record<string, number>} */
function sizes(folder) {
  /** @type {Record<string, number>} */
  const found = {};
  const visit = (/** @type {string} */ below) => {
    for (const entry of readdirSync(join(folder, below), { withFileTypes: true })) {
      const path = join(below, entry.name);
      if (entry.isDirectory()) visit(path);
      else if (entry.isFile()) found[path] = statSync(join(folder, path)).size;
    }
  };
  visit('');
  return found;
}
