/** Checked by the compiler alone: what must not compile stands under `@ts-expect-error`. */
import { applyOnce, IdempotentBatchConsumer, IdempotentConsumer, type IdempotentRunner, OutboxEvent } from 'nestjs-transactional-outbox';
import type { EntityManager, Repository } from 'typeorm';

@OutboxEvent({ type: 'a', topic: 't' })
class A {
  a!: string;
}

@OutboxEvent({ type: 'b', topic: 't' })
class B {
  b!: number;
}

declare const runner: IdempotentRunner;
declare const repository: Repository<A>;

/** All of this is right. */
export const right = [
  IdempotentConsumer('c'),
  IdempotentConsumer('c', { dedupe: 'table', events: [A, B], concurrentCopies: 'fail' }),
  IdempotentConsumer('c', { dedupe: 'redis', concurrentCopies: 'fail' }),
  IdempotentConsumer('c', { dedupe: 'state', events: [A], isApplied: ({ a }, manager) => manager.existsBy(A, { a }) }),
  IdempotentConsumer('c', { dedupe: 'state', events: [A, B], isApplied: (event) => 'a' in event }),
  IdempotentConsumer('c', { dedupe: 'state', isApplied: (payload: { id: string }) => payload.id === '' }),
  IdempotentConsumer('c', { events: [A, B], sequence: { of: (event) => ('a' in event ? event.a : event.b), onStale: 'dead-letter' } }),
  IdempotentConsumer('c', { dedupe: 'state', events: [B], isApplied: () => true, sequence: { of: ({ b }) => BigInt(b), key: ({ b }) => `k${b}` } }),
  IdempotentBatchConsumer('c', { events: [A, B], batchSize: 100, concurrentCopies: 'fail' }),
  IdempotentConsumer('c', { dedupe: 'state', isApplied: async (_payload, manager: EntityManager) => manager.existsBy(A, {}) }),
];

export const wrong = [
  // @ts-expect-error the guard is missing
  IdempotentConsumer('c', { dedupe: 'state' }),
  // @ts-expect-error a guard without dedupe by state
  IdempotentConsumer('c', { isApplied: () => true }),
  // @ts-expect-error a guard beside Redis
  IdempotentConsumer('c', { dedupe: 'redis', isApplied: () => true }),
  // @ts-expect-error copies wait for what the handler locks
  IdempotentConsumer('c', { dedupe: 'state', isApplied: () => true, concurrentCopies: 'wait' }),
  // @ts-expect-error a sequence needs a transaction
  IdempotentConsumer('c', { dedupe: 'redis', sequence: { of: () => 1 } }),
  // @ts-expect-error a sequence is for single messages
  IdempotentBatchConsumer('c', { sequence: { of: () => 1 } }),
  // @ts-expect-error a place is a number
  IdempotentConsumer('c', { events: [A], sequence: { of: () => new Date() } }),
  // @ts-expect-error the event has no such field
  IdempotentConsumer('c', { events: [A], sequence: { of: (event) => event.b } }),
  // @ts-expect-error no such way
  IdempotentConsumer('c', { sequence: { of: () => 1, onStale: 'stop' } }),
  // @ts-expect-error batches are recognised by the table only
  IdempotentBatchConsumer('c', { dedupe: 'redis' }),
  // @ts-expect-error the guard is for single messages
  IdempotentBatchConsumer('c', { isApplied: () => true }),
  // @ts-expect-error a single message has no batch size
  IdempotentConsumer('c', { batchSize: 100 }),
  // @ts-expect-error no such kind
  IdempotentConsumer('c', { dedupe: 'memory' }),
  // @ts-expect-error the event has no such field
  IdempotentConsumer('c', { dedupe: 'state', events: [A], isApplied: (event) => event.b === 1 }),
  // @ts-expect-error the guard answers yes or no
  IdempotentConsumer('c', { dedupe: 'state', isApplied: () => 'yes' }),
];

export function run(): readonly Promise<unknown>[] {
  // @ts-expect-error the guard is missing
  void runner.run('c', 'm', async () => 1, { dedupe: 'state' });
  // @ts-expect-error the id is missing
  void runner.runBatch('c', [{ id: 'm' }], async () => 1);
  // @ts-expect-error not an UPDATE
  void applyOnce(repository.find());
  return [
    runner.run('c', 'm', async () => 1, { dedupe: 'state', isApplied: (manager) => manager.existsBy(A, {}) }),
    applyOnce(repository.update({ a: '1' }, { a: '2' })),
    applyOnce(repository.createQueryBuilder().delete().execute()),
  ];
}
