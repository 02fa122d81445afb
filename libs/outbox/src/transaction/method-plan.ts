import 'reflect-metadata';
import type { Type } from '@nestjs/common';
import type { Propagation } from './transaction-options';

/** A method as decorators see it; `never` lets any parameters in. */
export type AnyMethod = (...args: never[]) => unknown;

/** Runs the method, or what other decorators made of it. */
type Proceed = () => unknown;

/** What the library's decorators want of one method. It is complete once the class is. */
export interface MethodPlan {
  around?: (instance: object, proceed: Proceed) => Promise<unknown>;
  /** The transaction that `around` runs it in, as far as one is asked for. */
  transaction?: { readonly dataSource: string; readonly propagation: Propagation };
  /** In the order in which they are written above the method. */
  readonly steps: MethodStep[];
}

export interface MethodStep {
  /** The class of the events that the step emits. */
  readonly emits: Type<object>;
  /** Before the method: refuses what cannot succeed. The returned function is called when the method has ended. */
  before(instance: object): () => void;
  /** After it succeeded. */
  after(instance: object, result: unknown, args: readonly unknown[]): void;
}

interface PlannedMethod {
  readonly plan: MethodPlan;
  readonly wrapper: AnyMethod;
}

const PLAN = Symbol('nestjs-transactional-outbox:plan');

/** Puts `around` outside everything that is on the method so far. */
export function planAround(
  target: object,
  key: string | symbol,
  descriptor: PropertyDescriptor,
  around: NonNullable<MethodPlan['around']>,
): MethodPlan {
  const existing = existingPlan(target, key);
  const isOutermost = existing !== undefined && existing.wrapper === descriptor.value && !existing.plan.around;
  const plan = isOutermost ? existing.plan : wrap(target, key, descriptor);
  plan.around = around;
  return plan;
}

/** Puts a step inside the `around` of the method, whether that was declared before or comes later. */
export function planStep(
  target: object,
  key: string | symbol,
  descriptor: PropertyDescriptor,
  step: MethodStep,
): void {
  const existing = existingPlan(target, key);
  const fits = existing !== undefined && (existing.plan.around || existing.wrapper === descriptor.value);
  const plan = fits ? existing.plan : wrap(target, key, descriptor);
  plan.steps.unshift(step);
}

/** What the library's decorators want of a method of the class, its own or inherited. */
export function planOf(prototype: object, key: string | symbol): MethodPlan | undefined {
  return (Reflect.getMetadata(PLAN, prototype, key) as PlannedMethod | undefined)?.plan;
}

function existingPlan(target: object, key: string | symbol): PlannedMethod | undefined {
  return Reflect.getOwnMetadata(PLAN, target, key) as PlannedMethod | undefined;
}

function wrap(target: object, key: string | symbol, descriptor: PropertyDescriptor): MethodPlan {
  const original = descriptor.value as (...args: unknown[]) => unknown;
  const plan: MethodPlan = { steps: [] };

  function wrapper(this: object, ...args: unknown[]): unknown {
    const proceed = (): unknown => {
      const leaves: (() => void)[] = [];
      const leave = (): void => leaves.forEach((end) => end());
      try {
        for (const step of plan.steps) leaves.push(step.before(this));
        const result = original.apply(this, args);
        if (isThenable(result)) {
          return Promise.resolve(result)
            .then((value) => finish(this, value, args))
            .finally(leave);
        }
        finish(this, result, args);
        leave();
        return result;
      } catch (error) {
        leave();
        throw error;
      }
    };
    return plan.around ? plan.around(this, proceed) : proceed();
  }

  function finish(instance: object, result: unknown, args: readonly unknown[]): unknown {
    for (const step of plan.steps) step.after(instance, result, args);
    return result;
  }

  copyIdentity(original, wrapper);
  descriptor.value = wrapper;
  Reflect.defineMetadata(PLAN, { plan, wrapper } satisfies PlannedMethod, target, key);
  return plan;
}

/** Nest and its neighbours keep what they know of a method on the function: it must not be lost. */
function copyIdentity(from: object, to: object): void {
  for (const name of ['name', 'length']) {
    Object.defineProperty(to, name, Object.getOwnPropertyDescriptor(from, name) ?? {});
  }
  for (const metadataKey of Reflect.getOwnMetadataKeys(from) as unknown[]) {
    Reflect.defineMetadata(metadataKey, Reflect.getOwnMetadata(metadataKey, from), to);
  }
}

function isThenable(value: unknown): value is Promise<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}
