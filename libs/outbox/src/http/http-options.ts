import { type CanActivate, ForbiddenException, type ModuleMetadata, type Type } from '@nestjs/common';
import { HttpUnguardedError, OutboxOptionsError } from '../errors';
import type { Operator } from '../operate/audit';
import type { KafkaClient } from '../operate/kafka-topic';

/** What is the same of a request on Express and on Fastify. */
export interface HttpRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** What a guard has left there. */
  readonly user?: unknown;
}

/** A guard as `@UseGuards` takes it. */
export type HttpGuard = Type<CanActivate> | CanActivate;

interface CommonOptions {
  /** Where it stands, below the app's global prefix. Default `outbox`. */
  readonly path?: string;
  /** The name of the data source, as for `OutboxModule`. */
  readonly dataSource?: string;
  /** Modules that provide what the guards inject, unless they are global. */
  readonly imports?: ModuleMetadata['imports'];
  /** Who may read payloads and headers of messages. Default: nobody. */
  canReadContent?(request: HttpRequest): boolean | Promise<boolean>;
  /**
   * A client of kafkajs, `new Kafka({ … })`: then dead letters of consumers are listed and replayed too. It belongs in the
   * service whose consumers have given them up. Default: none, and no such operations.
   */
  readonly kafka?: KafkaClient;
  /** Whether the page is served too. Default true. */
  readonly dashboard?: boolean;
}

interface GuardedOptions extends CommonOptions {
  /** Decides who may look and act: one guard or several, all of which must agree. They see the method of the request. */
  readonly guard: HttpGuard | readonly HttpGuard[];
  /** Who asks, such as a user's name: it is written to the log with every act. */
  actor(request: HttpRequest): string;
  readonly allowAnonymous?: never;
}

interface AnonymousOptions extends CommonOptions {
  /** Everybody who reaches the address may look and act: for development, or behind a proxy that asks who comes. */
  readonly allowAnonymous: true;
  readonly guard?: never;
  /** Who asks. Default `anonymous`. */
  actor?(request: HttpRequest): string;
}

/** Options of {@link OutboxHttpModule}. */
export type OutboxHttpOptions = GuardedOptions | AnonymousOptions;

/** The same, checked and complete. */
export interface HttpSettings {
  readonly path: string;
  readonly dataSource: string | undefined;
  readonly imports: NonNullable<ModuleMetadata['imports']>;
  readonly guards: readonly HttpGuard[];
  readonly dashboard: boolean;
  readonly kafka: KafkaClient | undefined;
  readonly actor: (request: HttpRequest) => string;
  readonly canReadContent: (request: HttpRequest) => boolean | Promise<boolean>;
}

const KNOWN = ['path', 'dataSource', 'imports', 'canReadContent', 'kafka', 'dashboard', 'guard', 'actor', 'allowAnonymous'];

/** @throws HttpUnguardedError, OutboxOptionsError */
export function resolveHttpOptions(options: OutboxHttpOptions): HttpSettings {
  const unknown = Object.keys(options ?? {}).filter((name) => !KNOWN.includes(name));
  if (unknown.length > 0) throw new OutboxOptionsError(`Unknown option ${unknown.join(', ')} of OutboxHttpModule. Known are: ${KNOWN.join(', ')}.`);
  const { path = 'outbox', dataSource, imports = [], canReadContent = () => false, dashboard = true, kafka, allowAnonymous } = options ?? {};
  const guards = guardsOf(options?.guard);
  if (guards.length === 0 && allowAnonymous !== true) {
    throw new HttpUnguardedError('OutboxHttpModule shows and changes messages: give it a guard, or say allowAnonymous: true.');
  }
  if (guards.length > 0 && allowAnonymous !== undefined) throw new OutboxOptionsError('Give a guard or allowAnonymous, not both.');
  if (guards.length > 0 && typeof options.actor !== 'function') {
    throw new OutboxOptionsError('actor must be a function that says who asks: every act is written to the log with a name.');
  }
  const { actor = () => 'anonymous' } = options;
  for (const [name, value] of Object.entries({ actor, canReadContent })) {
    if (typeof value !== 'function') throw new OutboxOptionsError(`${name} must be a function of the request.`);
  }
  if (typeof dashboard !== 'boolean') throw new OutboxOptionsError('dashboard must be true or false.');
  if (kafka !== undefined && (typeof kafka?.admin !== 'function' || typeof kafka.consumer !== 'function')) {
    throw new OutboxOptionsError('kafka must be a client of kafkajs, such as new Kafka({ … }).');
  }
  if (typeof path !== 'string' || !/^\/?[\w-]+(\/[\w-]+)*\/?$/.test(path)) {
    throw new OutboxOptionsError(`path must be parts of letters, digits, _ and -, such as "internal/outbox", not "${String(path)}".`);
  }
  return { path: path.replaceAll(/^\/|\/$/g, ''), dataSource, imports, guards, dashboard, kafka, actor, canReadContent };
}

/** Who acts: as the request says, never its body. @throws ForbiddenException when that is not known */
export function operatorOf({ actor }: HttpSettings, request: HttpRequest, reason: string): Operator {
  const by: unknown = actor(request);
  if (typeof by !== 'string' || by.trim() === '') throw new ForbiddenException('It is not known who asks.');
  return { by, reason };
}

function guardsOf(given: unknown): readonly HttpGuard[] {
  const guards = given === undefined ? [] : [given].flat();
  for (const guard of guards) {
    if (typeof guard !== 'function' && typeof (guard as CanActivate | null)?.canActivate !== 'function') {
      throw new OutboxOptionsError('guard must be a guard of Nest, its class, or a list of them.');
    }
  }
  return guards as HttpGuard[];
}
