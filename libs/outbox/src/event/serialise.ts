import { EventNotSerialisableError } from '../errors';

/**
 * The JSON text of an event. What JSON would lose or change without a word is refused, with the path to it:
 * BigInt, NaN and infinities, Map, Set, Buffer and typed arrays, functions, symbols, invalid dates, circular
 * objects, `undefined` in an array. A Date becomes its ISO text, `toJSON` is honoured, a property that is
 * `undefined` is left out.
 */
export function serialise(value: unknown): string {
  return JSON.stringify(plain(value, '$', new Set()));
}

function plain(value: unknown, path: string, ancestors: Set<object>): unknown {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return value;
    case 'number':
      if (!Number.isFinite(value)) refuse(path, String(value));
      return value;
    case 'object':
      return value === null ? null : plainObject(value, path, ancestors);
    default:
      return refuse(path, typeof value);
  }
}

function plainObject(value: object, path: string, ancestors: Set<object>): unknown {
  if (ancestors.has(value)) refuse(path, 'a circular reference');
  if (value instanceof Map || value instanceof Set || ArrayBuffer.isView(value) || value instanceof ArrayBuffer) {
    refuse(path, value.constructor.name);
  }
  if (value instanceof Date) {
    if (Number.isNaN(value.getTime())) refuse(path, 'an invalid Date');
    return value.toISOString();
  }
  ancestors.add(value);
  try {
    if ('toJSON' in value && typeof value.toJSON === 'function') {
      return plain(value.toJSON(), path, ancestors);
    }
    if (Array.isArray(value)) {
      return value.map((item, index) => plain(item, `${path}[${index}]`, ancestors));
    }
    const result: Record<string, unknown> = {};
    for (const [name, item] of Object.entries(value)) {
      if (item !== undefined) define(result, name, plain(item, `${path}.${name}`, ancestors));
    }
    return result;
  } finally {
    ancestors.delete(value);
  }
}

/** A plain assignment to `__proto__` would set the prototype and lose the property. */
function define(target: Record<string, unknown>, name: string, value: unknown): void {
  Object.defineProperty(target, name, { value, enumerable: true, configurable: true, writable: true });
}

function refuse(path: string, what: string): never {
  throw new EventNotSerialisableError(`The event holds ${what} at ${path}, which JSON cannot carry unchanged.`, path);
}
