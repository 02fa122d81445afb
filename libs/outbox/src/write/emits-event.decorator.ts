import type { Type } from '@nestjs/common';
import { plainToInstance } from 'class-transformer';
import { eventOptionsOf } from '../event/outbox-event.decorator';
import { planStep } from '../transaction/method-plan';
import { DEFAULT_DATA_SOURCE, HiddenProvider } from '../transaction/tokens';
import { Outbox } from './outbox';

/** The data of an event, without its methods. */
export type EventFields<E> = {
  [K in keyof E as E[K] extends (...args: never[]) => unknown ? never : K]: E[K];
};

/** What a mapper may return: one event, several, or none. */
export type Emitted<E> = EventFields<E> | readonly EventFields<E>[] | null | undefined;

export interface EmitsEventOptions {
  /** Name of the data source. Default `default`. */
  readonly dataSource?: string;
}

type EmittingMethod<A extends readonly unknown[], R> = <M extends (...args: A) => R | Promise<R>>(
  target: object,
  key: string | symbol,
  descriptor: TypedPropertyDescriptor<M>,
) => void;

const outboxes = new HiddenProvider(Outbox);

/**
 * Emits an event when the method has succeeded, in the method's transaction. Without a mapper the method's result is
 * the event (or an array of them, or nothing).
 *
 * @param event a class with `@OutboxEvent`
 * @param mapper makes the event's fields from the method's result and arguments
 * @throws NoTransactionError before the method runs, when there is no transaction
 */
export function EmitsEvent<E extends object>(event: Type<E>): EmittingMethod<never[], Emitted<E>>;
export function EmitsEvent<E extends object, R, A extends readonly unknown[] = never[]>(
  event: Type<E>,
  mapper: (result: R, args: A) => Emitted<E>,
  options?: EmitsEventOptions,
): EmittingMethod<A, R>;
export function EmitsEvent<E extends object>(
  event: Type<E>,
  mapper: (result: never, args: never) => Emitted<E> = (result: Emitted<E>) => result,
  options: EmitsEventOptions = {},
) {
  eventOptionsOf(event);
  const { dataSource = DEFAULT_DATA_SOURCE } = options;
  return (target: object, key: string | symbol, descriptor: PropertyDescriptor): void => {
    outboxes.declare(target, dataSource);
    planStep(target, key, descriptor, {
      emits: event,
      before: (instance) => outboxes.of(instance, dataSource).enter(),
      after: (instance, result, args) => {
        const outbox = outboxes.of(instance, dataSource);
        try {
          const emitted = mapper(result as never, args as never);
          if (emitted === null || emitted === undefined) return;
          const list: readonly unknown[] = Array.isArray(emitted) ? emitted : [emitted];
          outbox.emit(list.map((fields) => toInstance(event, fields)));
        } catch (error) {
          // Whoever swallows this must not commit what the method has done without its event.
          outbox.spoil(error);
          throw error;
        }
      },
    });
  };
}

function toInstance<E extends object>(event: Type<E>, fields: unknown): E {
  return fields instanceof event ? fields : plainToInstance(event, fields);
}
