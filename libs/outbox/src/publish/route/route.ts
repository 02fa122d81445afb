import { Logger } from '@nestjs/common';
import { OutboxError, OutboxOptionsError } from '../../errors';
import type { PublisherCapabilities, PublisherFactory } from '../publisher';
import { isTopic } from '../../event/to-message';
import { Road } from './road';
import { RoadState } from './road-state';
import { RoutedPublisher } from './routed-publisher';

/** A topic by its name, or topics by a pattern that is looked for in their names. */
export type TopicPattern = string | RegExp;

/** One road, and which topics take it. */
export interface Route {
  /** What health and logs call it. Default: `route 1` for the first, and so on. */
  readonly name?: string;
  /** The topics that take it. Default, for the last route only: all that no other takes. */
  readonly topics?: TopicPattern | readonly TopicPattern[];
  readonly publisher: PublisherFactory;
}

/**
 * Sends topics on different roads, such as to several clusters: each by the first route that takes it. While one
 * cluster is away, its topics wait without an attempt being counted, and the others go on. A message whose topic no
 * route takes is refused with `NO_ROUTE`, and in the end parked; a last route without `topics` takes all that is left.
 *
 * @example
 * route([
 *   { name: 'audit', topics: /^audit\./, publisher: kafkaPublisher({ brokers: ['audit:9092'] }) },
 *   { publisher: kafkaPublisher({ brokers: ['kafka:9092'] }) },
 * ])
 * @throws OutboxOptionsError naming the route
 */
export function route(routes: readonly Route[]): PublisherFactory {
  if (!Array.isArray(routes) || routes.length === 0) throw new OutboxOptionsError('route needs a list of at least one route.');
  const logger = new Logger('OutboxRoute');
  const resolved = routes.map((one: Route, index) => {
    const name = one?.name ?? `route ${index + 1}`;
    checkRoute(one, name, index === routes.length - 1);
    return { takes: matcherOf(one.topics), create: one.publisher, state: new RoadState(name, logger) };
  });
  const names = new Set(resolved.map(({ state }) => state.name));
  if (names.size < routes.length) throw new OutboxOptionsError('route: each route needs a name of its own.');
  return Object.assign(
    () => new RoutedPublisher(resolved.map(({ takes, create, state }) => new Road(takes, create, state))),
    { capabilities: capabilitiesOf(routes), prepare: () => prepareAll(routes), routes: () => resolved.map(({ state }) => state.status()) },
  );
}

/** What one of them cannot do, cannot be relied on. */
function capabilitiesOf(routes: readonly Route[]): PublisherCapabilities {
  const all = (capability: keyof PublisherCapabilities): boolean =>
    routes.every(({ publisher }) => publisher.capabilities?.[capability] !== false);
  return { order: all('order'), tombstones: all('tombstones') };
}

/** What one route cannot prepare keeps no other from it; of the errors, one that no other try can mend comes first. */
async function prepareAll(routes: readonly Route[]): Promise<void> {
  const prepared = await Promise.allSettled(routes.map(({ publisher }) => publisher.prepare?.()));
  const errors = prepared.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []));
  if (errors.length > 0) throw errors.find((error) => error instanceof OutboxError && !error.retryable) ?? errors[0];
}

const KNOWN = ['name', 'topics', 'publisher'];

function checkRoute(one: Route, name: string, isLast: boolean): void {
  const fail = (what: string): never => {
    throw new OutboxOptionsError(`route: ${JSON.stringify(name)} ${what}.`);
  };
  if (typeof one !== 'object' || one === null) fail('must be an object');
  const unknown = Object.keys(one).filter((option) => !KNOWN.includes(option));
  if (unknown.length > 0) fail(`has the unknown option ${unknown.join(', ')}; known are: ${KNOWN.join(', ')}`);
  if (typeof name !== 'string' || name === '') fail('must have a name that is text');
  if (typeof one.publisher !== 'function') fail('needs a publisher, such as kafkaPublisher({ … })');
  if (one.topics === undefined) return isLast ? undefined : fail('has no topics, so it would take all from the routes behind it: only the last may');
  const patterns = patternsOf(one.topics);
  if (patterns.length === 0) fail('takes no topic');
  for (const pattern of patterns) {
    if (typeof pattern === 'string' ? !isTopic(pattern) : !(pattern instanceof RegExp)) {
      fail(`takes ${JSON.stringify(pattern)}, which is neither the name of a topic nor a regular expression`);
    }
  }
}

function patternsOf(topics: TopicPattern | readonly TopicPattern[]): readonly TopicPattern[] {
  return Array.isArray(topics) ? topics : [topics as TopicPattern];
}

function matcherOf(topics: Route['topics']): (topic: string) => boolean {
  if (topics === undefined) return () => true;
  const patterns = patternsOf(topics);
  // `search` has no memory, whatever the flags of the expression.
  return (topic) => patterns.some((pattern) => (typeof pattern === 'string' ? pattern === topic : topic.search(pattern) >= 0));
}
