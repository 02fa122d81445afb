/** Checked by the compiler alone: what must not compile stands under `@ts-expect-error`. */
import { type Outbox, Transactional, type TransactionRunner } from 'nestjs-transactional-outbox';
import type { EntityManager, QueryRunner } from 'typeorm';

/** All of this is right. */
export class Right {
  @Transactional()
  async plain(): Promise<void> {
    return undefined;
  }

  @Transactional({ propagation: 'NESTED', isolation: 'SERIALIZABLE', retries: 2, dataSource: 'audit' })
  async withAll(id: number, ...rest: string[]): Promise<number> {
    return id + rest.length;
  }

  @Transactional()
  notAsyncButAPromise(): Promise<string> {
    return Promise.resolve('');
  }

  @Transactional()
  async generic<T>(value: T): Promise<T> {
    return value;
  }

  @Transactional()
  protected async hidden(): Promise<void> {
    return undefined;
  }
}

/** None of this compiles. */
export class Wrong {
  // @ts-expect-error a transaction cannot be synchronous
  @Transactional()
  synchronous(): number {
    return 1;
  }

  // @ts-expect-error nothing is not a promise either
  @Transactional()
  nothing(): void {
    return undefined;
  }

  // @ts-expect-error no such mode
  @Transactional({ propagation: 'ALWAYS' })
  async mode(): Promise<void> {
    return undefined;
  }

  // @ts-expect-error no such isolation level
  @Transactional({ isolation: 'SNAPSHOT' })
  async isolation(): Promise<void> {
    return undefined;
  }

  // @ts-expect-error unknown option
  @Transactional({ timeout: 5 })
  async option(): Promise<void> {
    return undefined;
  }

  // @ts-expect-error not a method
  @Transactional()
  field = 1;
}

// @ts-expect-error not for a class
@Transactional()
export class Whole {}

export function runner(transactions: TransactionRunner): readonly Promise<number>[] {
  // @ts-expect-error the work must be asynchronous
  void transactions.run(() => 1);
  // @ts-expect-error no such mode
  void transactions.run({ propagation: 'required' }, async () => 1);
  // @ts-expect-error the work is missing
  void transactions.run({ propagation: 'REQUIRED' });
  return [transactions.run(async () => 1), transactions.run({ propagation: 'REQUIRES_NEW' }, async () => 1)];
}

export function emit(outbox: Outbox, manager: EntityManager, queryRunner: QueryRunner, event: object): void {
  outbox.emit(event);
  outbox.emit([event, event], { manager });
  outbox.emitRaw({ topic: 't', type: 'x', payload: null });
  // @ts-expect-error not an object
  outbox.emit('order.placed');
  // @ts-expect-error of a query runner it is the manager that is given
  outbox.emit(event, { manager: queryRunner });
  // @ts-expect-error unknown option
  outbox.emit(event, { transaction: manager });
  // @ts-expect-error the payload is text
  outbox.emitRaw({ topic: 't', type: 'x', payload: {} });
  // @ts-expect-error the topic is missing
  outbox.emitRaw({ type: 'x', payload: '{}' });
}
