import { Controller, type DynamicModule, Module, type Type, UseFilters, UseGuards, VERSION_NEUTRAL } from '@nestjs/common';
import { DeadLetters } from '../operate/dead-letters';
import { OutboxAdmin } from '../operate/outbox-admin';
import { DEFAULT_DATA_SOURCE, tokenOf } from '../transaction/tokens';
import { ActController } from './act.controller';
import { DashboardController } from './dashboard.controller';
import { DeadLetterController } from './dead-letter.controller';
import { Failures } from './failures.filter';
import { type HttpSettings, type OutboxHttpOptions, resolveHttpOptions } from './http-options';
import { HTTP_ADMIN, HTTP_DEAD_LETTERS, HTTP_KAFKA, HTTP_SETTINGS } from './http-tokens';
import { LookController } from './look.controller';
import { SafeRequests } from './safe-requests';

/**
 * What an operator does, over HTTP: `OutboxAdmin` as REST, described by `openapi.json`, and a page at `dashboard`. It
 * works on Express and on Fastify. Import it beside `OutboxModule`, once for each data source that is to be seen.
 */
@Module({})
export class OutboxHttpModule {
  /** @throws HttpUnguardedError without a guard, OutboxOptionsError */
  static forRoot(options: OutboxHttpOptions): DynamicModule {
    const settings = resolveHttpOptions(options);
    const controllers: Type<object>[] = [LookController, ActController, ...(settings.kafka ? [DeadLetterController] : []), ...(settings.dashboard ? [DashboardController] : [])];
    return {
      module: OutboxHttpModule,
      imports: settings.imports,
      controllers: controllers.map((controller) => placed(controller, settings)),
      providers: [
        { provide: HTTP_SETTINGS, useValue: settings },
        { provide: HTTP_ADMIN, useExisting: tokenOf(OutboxAdmin, settings.dataSource ?? DEFAULT_DATA_SOURCE) },
        { provide: HTTP_DEAD_LETTERS, useExisting: tokenOf(DeadLetters, settings.dataSource ?? DEFAULT_DATA_SOURCE) },
        { provide: HTTP_KAFKA, useValue: settings.kafka },
      ],
    };
  }
}

/** A controller of its own for each import, with the path and the guards of that. */
function placed(controller: Type<object>, { path, guards }: HttpSettings): Type<object> {
  const Placed = { [controller.name]: class extends controller {} }[controller.name] as Type<object>;
  Controller({ path, version: VERSION_NEUTRAL })(Placed);
  UseGuards(SafeRequests, ...guards)(Placed);
  UseFilters(Failures)(Placed);
  return Placed;
}
