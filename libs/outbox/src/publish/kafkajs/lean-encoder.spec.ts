import { expect, it } from 'vitest';
import { makeEncoderLean } from './lean-encoder';

interface Encoder {
  readonly buffer: Buffer;
  writeVarInt(value: number): Encoder;
  writeUVarInt(value: number): Encoder;
  writeVarLong(value: unknown): Encoder;
  writeVarIntBytes(value: string | Buffer): Encoder;
}

/** The bytes of one number as the protocol has it: seven bits each, the lowest first. */
function leb128(value: bigint): number[] {
  const bytes: number[] = [];
  for (let rest = value; ; rest >>= 7n) {
    if (rest < 0x80n) return [...bytes, Number(rest)];
    bytes.push(Number(rest & 0x7fn) | 0x80);
  }
}

const zigzag = (value: number): bigint => (value >= 0 ? 2n * BigInt(value) : -2n * BigInt(value) - 1n);

it('writes numbers as the protocol has them, whatever their length', () => {
  const Encoder = require('kafkajs/src/protocol/encoder') as new () => Encoder;
  const { writeUVarInt } = Encoder.prototype as Encoder;
  makeEncoderLean();
  expect((Encoder.prototype as Encoder).writeUVarInt, 'kafkajs does it as before').not.toBe(writeUVarInt);
  makeEncoderLean();
  const numbers = [0, 1, 2, -1, -2, 63, 64, -64, -65, 127, 128, 8191, 8192, 2 ** 20, 2 ** 30 - 1, 2 ** 30, -(2 ** 30), -(2 ** 30) - 1, 2 ** 31 - 1, -(2 ** 31)];
  for (const number of numbers) {
    expect([...new Encoder().writeVarInt(number).buffer], `${number}`).toEqual(leb128(zigzag(number)));
    expect([...new Encoder().writeUVarInt(number).buffer], `${number}`).toEqual(leb128(BigInt(number >>> 0)));
  }
  for (const number of [...numbers, 2 ** 31, 2 ** 45, -(2 ** 45), Number.MAX_SAFE_INTEGER]) {
    expect([...new Encoder().writeVarLong(number).buffer], `${number}`).toEqual(leb128(zigzag(number)));
  }
  const long = new Encoder();
  for (let n = 0; n < 2000; n++) long.writeVarInt(n);
  expect(long.buffer.equals(Buffer.from(Array.from({ length: 2000 }, (_, n) => leb128(zigzag(n))).flat()))).toBe(true);
});

it('has room for texts and bytes of any length, and says how long a number will be', () => {
  const Encoder = require('kafkajs/src/protocol/encoder') as (new () => Encoder) & { sizeOfVarLong(value: number): number };
  makeEncoderLean();
  for (const length of [0, 1, 62, 63, 64, 65, 126, 127, 128, 510, 511, 512, 513, 5000]) {
    const bytes = Buffer.alloc(length, 'x');
    const expected = Buffer.concat([Buffer.from(leb128(zigzag(length))), bytes]);
    expect(new Encoder().writeVarIntBytes(bytes).buffer.equals(expected), `${length} bytes`).toBe(true);
    const twice = new Encoder().writeVarIntBytes(bytes.toString()).writeVarIntBytes(bytes.toString()).buffer;
    expect(twice.equals(Buffer.concat([expected, expected])), `${length} characters`).toBe(true);
  }
  for (const number of [0, 63, 64, -64, -65, 2 ** 20, 2 ** 30 - 1, 2 ** 30, -(2 ** 30), 2 ** 45, -(2 ** 45)]) {
    expect(Encoder.sizeOfVarLong(number), `${number}`).toBe(leb128(zigzag(number)).length);
  }
});
