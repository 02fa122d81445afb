import { describe, expect, it } from 'vitest';
import { EventNotSerialisableError } from '../errors';
import { serialise } from './serialise';

describe('serialise', () => {
  it.each([
    [{ a: 1, b: 'ü😀', c: null, d: true, e: [1, 'x', null] }, '{"a":1,"b":"ü😀","c":null,"d":true,"e":[1,"x",null]}'],
    [{ b: 1, a: 2 }, '{"b":1,"a":2}'],
    [{ at: new Date(0) }, '{"at":"1970-01-01T00:00:00.000Z"}'],
    [{ gone: undefined, kept: 0 }, '{"kept":0}'],
    [{ price: { toJSON: () => '12.50' } }, '{"price":"12.50"}'],
    [JSON.parse('{"__proto__":{"x":1}}'), '{"__proto__":{"x":1}}'],
    ['text', '"text"'],
    [{ half: '\ud800' }, '{"half":"\\ud800"}'],
  ])('%j', (value, json) => {
    expect(serialise(value)).toBe(json);
  });

  it('takes the same object twice, which is no circle', () => {
    const shared = { x: 1 };
    expect(serialise({ a: shared, b: [shared] })).toBe('{"a":{"x":1},"b":[{"x":1}]}');
  });

  const circular: { self?: unknown } = {};
  circular.self = { circular };

  it.each([
    [{ a: { b: [0, 1n] } }, '$.a.b[1]'],
    [{ n: Number.NaN }, '$.n'],
    [{ n: Number.POSITIVE_INFINITY }, '$.n'],
    [{ m: new Map([[1, 2]]) }, '$.m'],
    [{ s: new Set([1]) }, '$.s'],
    [{ b: Buffer.from('x') }, '$.b'],
    [{ b: new Uint8Array(1) }, '$.b'],
    [{ f: () => 1 }, '$.f'],
    [{ s: Symbol('x') }, '$.s'],
    [{ d: new Date(Number.NaN) }, '$.d'],
    [{ list: [undefined] }, '$.list[0]'],
    [circular, '$.self.circular'],
    [undefined, '$'],
  ])('refuses what JSON would lose: %#', (value, path) => {
    expect(() => serialise(value)).toThrow(EventNotSerialisableError);
    expect(() => serialise(value)).toThrow(expect.objectContaining({ path }));
  });
});
