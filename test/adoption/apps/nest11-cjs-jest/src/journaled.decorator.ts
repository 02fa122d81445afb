export const journal: string[] = [];

/** As apps write them: it replaces the method and knows nothing of other decorators. */
export function Journaled(place: string) {
  return (_target: object, key: string | symbol, descriptor: PropertyDescriptor): void => {
    const original = descriptor.value;
    descriptor.value = async function (this: unknown, ...args: unknown[]) {
      journal.push(`${place} ${String(key)}`);
      const result = await original.apply(this, args);
      journal.push(`${String(key)} ${place}`);
      return result;
    };
  };
}
