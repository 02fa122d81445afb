const LEAN = Symbol.for('nestjs-transactional-outbox.kafkajs-lean-encoder');

interface Encoder {
  buf: Buffer;
  offset: number;
  ensureAvailable(bytes: number): void;
  writeUVarInt(value: number): Encoder;
  writeVarLong(value: unknown): Encoder;
  writeVarIntBytes(value: string): Encoder;
}

interface EncoderClass {
  new (): Encoder;
  readonly prototype: Encoder;
  nextPowerOfTwo(value: number): number;
  sizeOfVarInt(value: number): number;
  sizeOfVarLong(value: unknown): number;
  [LEAN]?: true;
}

/** The longest 32-bit number takes so many bytes. */
const MOST_BYTES = 5;
/** What fits into 31 bits and a sign. */
const SMALL = 2 ** 30;
/** An encoder begins with so many bytes: it is the most that V8 keeps in its own heap, and a header fits. */
const FIRST_BYTES = 64;

/**
 * Has kafkajs 2.2 encode with less garbage, which is a third of the time that a batch takes in it: numbers of variable
 * length, a dozen for each record, go straight into the buffer instead of through an array and a buffer of each; and an
 * encoder, of which each record has one and each of its headers another, begins with 64 bytes instead of 512.
 *
 * This concerns all clients of this copy of kafkajs, to their good. One that looks different, or would write other
 * bytes, is left alone.
 */
export function makeEncoderLean(): void {
  const Found = encoderClass();
  if (Found === undefined || Found[LEAN] === true) return;
  const { prototype, nextPowerOfTwo, sizeOfVarInt, sizeOfVarLong } = Found;
  const { ensureAvailable, writeUVarInt, writeVarLong } = prototype;
  const used = [nextPowerOfTwo, sizeOfVarInt, sizeOfVarLong, ensureAvailable, writeUVarInt, writeVarLong];
  if (!used.every((method) => typeof method === 'function')) return;
  const before = { ensureAvailable, writeUVarInt, writeVarLong };
  const expected = sample(Found);
  // The constructor asks for its first bytes by this; whoever needs more has the method below.
  Found.nextPowerOfTwo = () => FIRST_BYTES;
  Found.sizeOfVarLong = (value) => (isSmall(value) ? sizeOfVarInt.call(Found, value) : sizeOfVarLong.call(Found, value));
  Object.assign(prototype, {
    ensureAvailable(this: Encoder, bytes: number): void {
      const needed = this.offset + bytes;
      if (needed <= this.buf.length) return;
      let length = this.buf.length * 2;
      while (length < needed) length *= 2;
      const larger = Buffer.allocUnsafe(length);
      this.buf.copy(larger, 0, 0, this.offset);
      this.buf = larger;
    },
    writeUVarInt(this: Encoder, value: number): Encoder {
      this.ensureAvailable(MOST_BYTES);
      let rest = value >>> 0;
      while (rest > 0x7f) {
        this.buf[this.offset++] = (rest & 0x7f) | 0x80;
        rest >>>= 7;
      }
      this.buf[this.offset++] = rest;
      return this;
    },
    writeVarLong(this: Encoder, value: unknown): Encoder {
      return isSmall(value) ? this.writeUVarInt((value << 1) ^ (value >> 31)) : writeVarLong.call(this, value);
    },
  } satisfies Partial<Encoder>);
  Found[LEAN] = true;
  if (sample(Found).equals(expected)) return;
  Object.assign(Found, { nextPowerOfTwo, sizeOfVarLong });
  Object.assign(prototype, before);
}

/** Whether it is a number that needs no more than 32 bits. */
function isSmall(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= -SMALL && value < SMALL;
}

/** What encoders make of numbers of all lengths, and of texts that their buffers have to grow for. */
function sample(Encoder: EncoderClass): Buffer {
  const encoder = new Encoder();
  const numbers = [0, 1, -1, 63, 64, 127, 128, 300, 16_383, 16_384, SMALL - 1, -SMALL, 2 ** 31 - 1, -(2 ** 31)];
  for (const number of numbers) encoder.writeUVarInt(number);
  for (const number of [...numbers, SMALL, 2 ** 40, -(2 ** 40)]) {
    encoder.writeVarLong(number);
    encoder.writeUVarInt(Encoder.sizeOfVarLong(number));
  }
  for (const length of [1, 60, 64, 500, 512, 5000]) encoder.writeVarIntBytes('é'.repeat(length));
  return Buffer.from(encoder.buf.subarray(0, encoder.offset));
}

function encoderClass(): EncoderClass | undefined {
  try {
    // Not part of what kafkajs exports, so nothing depends on finding it.
    return require('kafkajs/src/protocol/encoder') as EncoderClass;
  } catch {
    return undefined;
  }
}
