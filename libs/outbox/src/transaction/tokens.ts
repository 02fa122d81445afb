import { Inject, type InjectionToken, type Type } from '@nestjs/common';
import { OutboxNotInjectedError } from '../errors';

export const DEFAULT_DATA_SOURCE = 'default';

/** A class, whether or not others may make instances of it. */
type Class = { readonly name: string; readonly prototype: object };

/**
 * The injection token of one data source's instance of a provider: the class itself for the default data source, as
 * `@nestjs/typeorm` does it.
 */
export function tokenOf(provider: Class, dataSource: string): InjectionToken {
  return dataSource === DEFAULT_DATA_SOURCE ? (provider as Type) : `${dataSource}${provider.name}`;
}

/**
 * Lets a decorator's method reach a provider: Nest sets a hidden property on every instance that it makes, also of
 * request-scoped classes, and refuses to start where the provider is missing.
 */
export class HiddenProvider<T extends object> {
  private readonly keys = new Map<string, symbol>();

  constructor(private readonly provider: Type<T>) {}

  declare(prototype: object, dataSource: string): void {
    Inject(tokenOf(this.provider, dataSource))(prototype, this.key(dataSource));
  }

  /** @throws OutboxNotInjectedError when Nest did not make the instance */
  of(instance: object, dataSource: string): T {
    const value: unknown = Reflect.get(instance, this.key(dataSource));
    if (value instanceof this.provider) return value;
    throw new OutboxNotInjectedError(
      `${instance?.constructor?.name ?? 'The object'} was not made by Nest, so its decorated methods have no outbox. ` +
        'Provide the class in a module of an app that imports OutboxModule.forRoot().',
    );
  }

  private key(dataSource: string): symbol {
    let key = this.keys.get(dataSource);
    if (!key) {
      key = Symbol(`OutboxModule.forRoot() for data source "${dataSource}": ${this.provider.name}`);
      this.keys.set(dataSource, key);
    }
    return key;
  }
}
