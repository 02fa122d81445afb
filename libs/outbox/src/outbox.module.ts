import { type DynamicModule, type InjectionToken, Module, type Provider, type Type } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { SchedulerRegistry } from '@nestjs/schedule';
import { DataSource } from 'typeorm';
import { BatchConsumer } from './consume/batch/batch-consumer';
import { assertConsumers } from './consume/consumer-check';
import { ConsumerEvents } from './consume/consumer-events';
import { IdempotentRunner } from './consume/idempotent-runner';
import { MessageConsumer } from './consume/message-consumer';
import { DataSourceMissingError, OutboxModuleDuplicateError } from './errors';
import { CleanerSchedule } from './operate/cleaner-schedule';
import { DeadLetters } from './operate/dead-letters';
import { OutboxAdmin } from './operate/outbox-admin';
import { OutboxHealthIndicator } from './observe/health-indicator';
import { OutboxHealth } from './observe/outbox-health';
import { type OutboxModuleAsyncOptions, type OutboxModuleOptions, resolveOptions } from './options';
import { OutboxCore } from './outbox-core';
import { Relay } from './relay/relay';
import { RelaySchedule } from './relay/relay-schedule';
import { DEFAULT_DATA_SOURCE, tokenOf } from './transaction/tokens';
import { TransactionRunner } from './transaction/transaction-runner';
import { checkEmitters } from './write/emitter-check';
import { EventTypes } from './write/event-types';
import { Outbox } from './write/outbox';

/** What the module offers for injection, and where it is found. */
const OFFERED: readonly (readonly [Type<object>, (core: OutboxCore) => object])[] = [
  [TransactionRunner, (core) => core.transactions],
  [Outbox, (core) => core.outbox],
  [IdempotentRunner, (core) => core.idempotent],
  [MessageConsumer, (core) => core.consumers],
  [BatchConsumer, (core) => core.batches],
  [ConsumerEvents, (core) => core.consumerEvents],
  [Relay, (core) => core.relay],
  [OutboxHealth, (core) => core.health],
  [OutboxHealthIndicator, (core) => new OutboxHealthIndicator(core.health, core.relay, core.consumerEvents)],
  [OutboxAdmin, (core) => core.admin],
  [DeadLetters, (core) => core.deadLetters],
];

/**
 * The transactional outbox of one TypeORM data source. Import it once for each data source, in the root module; what
 * it provides is global.
 */
@Module({})
export class OutboxModule {
  /**
   * @throws OutboxOptionsError, OutboxModuleDuplicateError, DataSourceMissingError, DatabaseUnsupportedError,
   *   TablesMissingError, LanesMismatchError, PartitionsMissingError,
   *   ConsumerDuplicateError, ConsumerMisplacedError, EventDuplicateError: all when the app starts
   */
  static forRoot(options: OutboxModuleOptions): DynamicModule {
    return OutboxModule.forRootAsync({
      ...(options?.dataSource === undefined ? {} : { dataSource: options.dataSource }),
      useFactory: () => options,
    });
  }

  /** The same with options that are made by a factory. */
  static forRootAsync(options: OutboxModuleAsyncOptions): DynamicModule {
    const name = options.dataSource ?? DEFAULT_DATA_SOURCE;
    const optionsToken = Symbol('OutboxModule options');
    const coreToken = tokenOf(OutboxCore, name);
    const providers: Provider[] = [
      { provide: optionsToken, useFactory: options.useFactory as () => unknown, inject: options.inject ?? [] },
      {
        provide: coreToken,
        inject: [optionsToken, ModulesContainer, { token: dataSourceToken(name), optional: true }],
        useFactory: async (given: OutboxModuleOptions, modules: ModulesContainer, dataSource?: DataSource) => {
          assertSingle(modules, coreToken, name);
          const types = new EventTypes();
          checkEmitters(modules, types);
          const resolved = resolveOptions(given);
          assertConsumers(modules, { dataSource: name, hasRedis: resolved.consume.redis !== undefined });
          if (!dataSource?.isInitialized) {
            throw new DataSourceMissingError(
              `There is no initialised data source "${name}": import TypeOrmModule.forRoot({ … }) in the root module.`,
            );
          }
          return OutboxCore.create(resolved, dataSource, types, name);
        },
      },
      {
        provide: tokenOf(RelaySchedule, name),
        inject: [coreToken, { token: SchedulerRegistry, optional: true }],
        useFactory: (core: OutboxCore, registry: SchedulerRegistry = new SchedulerRegistry()) =>
          new RelaySchedule(core.relay, registry, name),
      },
      {
        provide: tokenOf(CleanerSchedule, name),
        inject: [coreToken, { token: SchedulerRegistry, optional: true }],
        useFactory: (core: OutboxCore, registry: SchedulerRegistry = new SchedulerRegistry()) =>
          new CleanerSchedule(core.cleaner, core.cleans, registry, name),
      },
      ...OFFERED.map(([type, pick]) => ({ provide: tokenOf(type, name), useFactory: pick, inject: [coreToken] })),
    ];
    return {
      module: OutboxModule,
      global: true,
      imports: options.imports ?? [],
      providers,
      exports: OFFERED.map(([type]) => tokenOf(type, name)),
    };
  }
}

/** As `getDataSourceToken` of `@nestjs/typeorm` has it. */
function dataSourceToken(name: string): InjectionToken {
  return name === DEFAULT_DATA_SOURCE ? DataSource : `${name}DataSource`;
}

function assertSingle(modules: ModulesContainer, coreToken: InjectionToken, name: string): void {
  const same = [...modules.values()].filter(
    (module) => module.metatype === OutboxModule && module.providers.has(coreToken),
  );
  if (same.length > 1) {
    throw new OutboxModuleDuplicateError(
      `OutboxModule.forRoot() is imported ${same.length} times for the data source "${name}". Import it once, in ` +
        'the root module: what it provides is global. Another data source needs a name of its own.',
    );
  }
}
