import type { ModulesContainer } from '@nestjs/core';

/** A class of the app, as boot checks look at it. */
export type AppClass = { readonly name: string; readonly prototype: object };

/** The classes that the app makes instances of, each once. */
export function classesOf(modules: ModulesContainer, kind: 'controllers' | 'providers'): Set<AppClass> {
  const wrappers = [...modules.values()].flatMap((module) => [...module[kind].values()]);
  // A class in two modules is one class; a factory is none.
  return new Set(
    wrappers
      .filter(({ metatype, inject }) => typeof metatype === 'function' && metatype.prototype && !inject)
      .map(({ metatype }) => metatype as unknown as AppClass),
  );
}

/** Every method of a class by its name, inherited ones too, each once. */
export function methodsOf({ prototype }: AppClass): Map<string, object> {
  const methods = new Map<string, object>();
  for (let level: object | null = prototype; level && level !== Object.prototype; level = Reflect.getPrototypeOf(level)) {
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(level))) {
      if (typeof value === 'function' && name !== 'constructor' && !methods.has(name)) methods.set(name, value as object);
    }
  }
  return methods;
}
