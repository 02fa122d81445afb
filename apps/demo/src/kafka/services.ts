type Services = typeof import('../../../../test/services/index.mjs');

/** The servers of the tests. They are no part of the build, so the path leads from `dist` into the working copy. */
export async function services(): Promise<Services> {
  return (await import(new URL('../../../../../test/services/index.mjs', import.meta.url).href)) as Services;
}
