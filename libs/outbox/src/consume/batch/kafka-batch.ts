import type { ExecutionContext } from '@nestjs/common';

/** A message of a batch, as Nest would have called the handler for it alone. */
export interface KafkaBatchItem {
  readonly data: unknown;
  readonly context: object;
}

/** What {@link KafkaBatchServer} calls a handler with in place of the payload. */
export class KafkaBatch {
  constructor(
    readonly items: readonly KafkaBatchItem[],
    /** Called with the offset up to which everything has been handled. */
    readonly resolve: (offset: string) => void,
  ) {}
}

/** Name among the extras of a handler that takes batches; its value is the most messages of one. */
export const BATCH_SIZE = 'outboxBatchSize';

/** The context of one message of the batch. */
export function contextOf(whole: ExecutionContext, { data, context }: KafkaBatchItem): ExecutionContext {
  const args = [data, context];
  const rpc = { getData: () => data, getContext: () => context };
  const own = { getArgs: () => args, getArgByIndex: (index: number) => args[index], switchToRpc: () => rpc };
  return Object.assign(Object.create(whole) as ExecutionContext, own);
}
