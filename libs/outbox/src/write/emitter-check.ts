import { Logger } from '@nestjs/common';
import type { ModulesContainer } from '@nestjs/core';
import { classesOf, methodsOf } from '../transaction/app-classes';
import { planOf } from '../transaction/method-plan';
import type { EventTypes } from './event-types';

/** What marks a method as called by a framework: a route, a message pattern, a timer. */
const ENTRANCES = ['path', 'microservices:pattern', 'SCHEDULER_TYPE'];
/** What may open a transaction around it: an interceptor. */
const INTERCEPTORS = '__interceptors__';

/**
 * Looks at every `@EmitsEvent` of the app: registers its events, and warns of methods that a framework calls without a
 * transaction.
 *
 * @throws EventDuplicateError
 */
export function checkEmitters(modules: ModulesContainer, types: EventTypes): void {
  for (const type of new Set([...classesOf(modules, 'controllers'), ...classesOf(modules, 'providers')])) {
    for (const [name, method] of methodsOf(type)) {
      const plan = planOf(type.prototype, name);
      for (const step of plan?.steps ?? []) types.add(step.emits);
      const isEntrance = ENTRANCES.some((key) => Reflect.hasMetadata(key, method));
      const isWrapped = Reflect.hasMetadata(INTERCEPTORS, method) || Reflect.hasMetadata(INTERCEPTORS, type);
      if (plan?.steps.length && !plan.around && isEntrance && !isWrapped) {
        new Logger('Outbox').warn(
          `${type.name}.${name} has @EmitsEvent and no @Transactional(): called by itself it will be refused.`,
        );
      }
    }
  }
}
