import type * as Kafka from '@platformatic/kafka' with { 'resolution-mode': 'import' };

/** The newest version whose answers version 1 of the client can always read. */
const NEWEST_READABLE = 9;

/**
 * Keeps a producer from versions of the produce request whose answers the client may misread. From version 10 on a
 * broker says beside "not the leader" who is; version 1.35 stumbles over it and loses the whole answer, with what was
 * stored of the batch: each change of leaders would make duplicates. Version 2 can read it, and misses nothing either.
 */
export function useReadableAnswers(client: typeof Kafka, producer: Kafka.Producer): void {
  const getApi = producer[client.kGetApi].bind(producer) as (name: string, callback: (error: Error | null, api?: unknown) => void) => void;
  Object.assign(producer, {
    [client.kGetApi](name: string, callback: (error: Error | null, api?: unknown) => void): void {
      getApi(name, (error, api) => {
        const tooNew = name === 'Produce' && isVersioned(api) && api.version > NEWEST_READABLE;
        callback(error, tooNew ? client.produceV9.api : api);
      });
    },
  });
}

function isVersioned(api: unknown): api is { readonly version: number } {
  return typeof api === 'function' && 'version' in api && typeof api.version === 'number';
}
