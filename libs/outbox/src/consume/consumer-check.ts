import type { ModulesContainer } from '@nestjs/core';
import { ConsumerDuplicateError, ConsumerMisplacedError, OutboxOptionsError } from '../errors';
import { type AppClass, classesOf, methodsOf } from '../transaction/app-classes';
import { type MethodPlan, planOf } from '../transaction/method-plan';
import { DEFAULT_DATA_SOURCE } from '../transaction/tokens';
import type { Propagation } from '../transaction/transaction-options';
import { CONSUMER, type ConsumerMetadata } from './consumer-metadata';
import { HANDLER_TYPE, MESSAGE_HANDLER } from './delivery';

/** Where `@nestjs/microservices`, an optional peer, keeps the patterns of a handler. */
const PATTERN = 'microservices:pattern';

const LEAVES: ReadonlySet<Propagation> = new Set(['REQUIRES_NEW', 'NOT_SUPPORTED', 'NEVER']);

interface MessageHandler {
  readonly place: string;
  readonly consumer: ConsumerMetadata;
  readonly patterns: readonly string[];
}

/** What a module's consumers can rely on. */
interface Ground {
  readonly dataSource: string;
  readonly hasRedis: boolean;
}

/**
 * Looks at every `@IdempotentConsumer` of the app.
 *
 * @throws ConsumerDuplicateError when two handlers would take each other's messages for repeats
 * @throws ConsumerMisplacedError when one has no effect, or would take effect twice
 * @throws OutboxOptionsError when one of this data source needs Redis and the module has none
 */
export function assertConsumers(modules: ModulesContainer, { dataSource, hasRedis }: Ground): void {
  const controllers = classesOf(modules, 'controllers');
  for (const provider of classesOf(modules, 'providers')) assertNoConsumer(provider);
  const byName = new Map<string, MessageHandler[]>();
  for (const handler of [...controllers].flatMap(handlersOf)) {
    const same = byName.get(handler.consumer.name) ?? [];
    for (const other of same) assertApart(handler, other);
    const { options } = handler.consumer;
    if (options.dedupe === 'redis' && !hasRedis && (options.dataSource ?? DEFAULT_DATA_SOURCE) === dataSource) {
      throw new OutboxOptionsError(
        `${handler.place} has dedupe: "redis": the module needs its option consume.redis: redisDedupe({ client }).`,
      );
    }
    byName.set(handler.consumer.name, [...same, handler]);
  }
}

function handlersOf(controller: AppClass): MessageHandler[] {
  const shared = Reflect.getMetadata(CONSUMER, controller) as ConsumerMetadata | undefined;
  const handlers: MessageHandler[] = [];
  for (const [name, method] of methodsOf(controller)) {
    const place = `${controller.name}.${name}`;
    const own = Reflect.getMetadata(CONSUMER, method) as ConsumerMetadata | undefined;
    const patterns = Reflect.getMetadata(PATTERN, method) as unknown[] | undefined;
    if (own && shared) {
      throw new ConsumerMisplacedError(`${place} and its controller both have @IdempotentConsumer: keep one of them.`);
    }
    if (own && !patterns) throw misplaced(place, 'is no message handler: it has no @EventPattern or @MessagePattern');
    if (own?.isBatch && Reflect.getMetadata(HANDLER_TYPE, method) === MESSAGE_HANDLER) {
      throw new ConsumerMisplacedError(`${place} has @IdempotentBatchConsumer and @MessagePattern: a batch answers nobody.`);
    }
    const consumer = own ?? shared;
    if (consumer && patterns) assertInside(place, consumer, planOf(controller.prototype as object, name)?.transaction);
    if (consumer && patterns) handlers.push({ place, consumer, patterns: patterns.map(textOf) });
  }
  if (shared && handlers.length === 0) throw misplaced(controller.name, 'has no message handler');
  return handlers;
}

/** What a handler does outside of its message's transaction is not undone with it, and done again with its next try. */
function assertInside(place: string, { options }: ConsumerMetadata, transaction: MethodPlan['transaction']): void {
  const leaves = transaction !== undefined && LEAVES.has(transaction.propagation);
  if (!leaves || options.dedupe === 'redis' || transaction.dataSource !== (options.dataSource ?? DEFAULT_DATA_SOURCE)) return;
  throw new ConsumerMisplacedError(
    `${place} has @Transactional({ propagation: '${transaction.propagation}' }): what it does would not be one with the ` +
      'record that it has handled the message. Leave it out, or call such a method from the handler.',
  );
}

function assertNoConsumer(provider: AppClass): void {
  if (Reflect.hasMetadata(CONSUMER, provider)) throw misplaced(provider.name, 'is not a controller');
  for (const [name, method] of methodsOf(provider)) {
    if (Reflect.hasMetadata(CONSUMER, method)) throw misplaced(`${provider.name}.${name}`, 'is not in a controller');
  }
}

function assertApart(one: MessageHandler, other: MessageHandler): void {
  // Handlers of one controller may share a name, as long as no message comes to two of them.
  const isShared = one.consumer === other.consumer;
  if (isShared && !one.patterns.some((pattern) => other.patterns.includes(pattern))) return;
  throw new ConsumerDuplicateError(
    `${other.place} and ${one.place} are both the consumer "${one.consumer.name}"` +
      `${isShared ? ' of the same topic' : ''}: one would take for repeats what the other has handled. ` +
      'Give each a name of its own.',
  );
}

function misplaced(place: string, what: string): ConsumerMisplacedError {
  return new ConsumerMisplacedError(`@IdempotentConsumer has no effect here: ${place} ${what}.`);
}

function textOf(pattern: unknown): string {
  return typeof pattern === 'string' || pattern instanceof RegExp ? String(pattern) : JSON.stringify(pattern);
}
