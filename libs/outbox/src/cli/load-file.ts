import { pathToFileURL } from 'node:url';
import { Failure } from './failure';

/** What a file of JavaScript exports. @throws Failure saying why it cannot be loaded */
export async function loadFile(path: string): Promise<Record<string, unknown>> {
  try {
    return (await import(pathToFileURL(path).href)) as Record<string, unknown>;
  } catch (cause) {
    const hint = /\.[cm]?ts$/.test(path) ? ' Node cannot run it as it is: give the built file, such as dist/ormconfig.js.' : '';
    throw new Failure(`${path} cannot be loaded: ${cause instanceof Error ? cause.message : String(cause)}${hint}`, 2, { cause });
  }
}
