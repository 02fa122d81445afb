import { describe, expect, it } from 'vitest';
import { readProduceRequest, readProduceResponse } from './produce-protocol';

type Encoded = { readonly buffer: Buffer; writeInt32(n: number): Encoded; writeInt16(n: number): Encoded; writeString(s: string): Encoded; writeInt64(n: number | string): Encoded; writeArray(a: Encoded[]): Encoded };

const Encoder = require('kafkajs/src/protocol/encoder') as new () => Encoded;
const encodeRequest = require('kafkajs/src/protocol/request') as (args: object) => Promise<Encoded>;
const produce = (version: number) => require(`kafkajs/src/protocol/requests/produce/v${version}/request`) as (args: object) => object;

/** As kafkajs itself writes it. */
async function request(version: number, topics: Record<string, number[]>): Promise<Buffer> {
  const topicData = Object.entries(topics).map(([topic, partitions]) => ({
    topic,
    partitions: partitions.map((partition) => ({
      partition,
      firstSequence: 0,
      messages: [{ key: 'k', value: 'x'.repeat(1_000 * partition), headers: { h: 'v' }, timestamp: '5' }],
    })),
  }));
  const body = produce(version)({ acks: -1, timeout: 1_000, topicData });
  return (await encodeRequest({ correlationId: 77, clientId: 'ä client', request: body })).buffer;
}

describe('readProduceRequest', () => {
  it.each([3, 4, 5, 6, 7])('finds the partitions of a request of version %i', async (version) => {
    expect(readProduceRequest(await request(version, { orders: [0, 5], 'pay.ments': [2] }))).toEqual({
      correlationId: 77,
      version,
      units: ['orders/0', 'orders/5', 'pay.ments/2'],
    });
  });

  it('passes by other requests, and versions that it does not know', async () => {
    const bytes = await request(7, { orders: [0] });
    const other = Buffer.from(bytes);
    other.writeInt16BE(3, 4);
    expect(readProduceRequest(other)).toBeNull();
    const newer = Buffer.from(bytes);
    newer.writeInt16BE(9, 6);
    expect(readProduceRequest(newer)).toBeNull();
    expect(readProduceRequest(Buffer.from([0, 0, 0, 1, 5]))).toBeNull();
  });
});

describe('readProduceResponse', () => {
  it.each([3, 4, 5, 6, 7])('reads what a response of version %i says', (version) => {
    const partition = (id: number, code: number, offset: string) => {
      const encoder = new Encoder().writeInt32(id).writeInt16(code).writeInt64(offset).writeInt64(-1);
      return version >= 5 ? encoder.writeInt64(0) : encoder;
    };
    const topic = (name: string, ...partitions: Encoded[]) => new Encoder().writeString(name).writeArray(partitions);
    const body = new Encoder()
      .writeArray([topic('orders', partition(0, 0, '9007199254740993'), partition(1, 10, '-1')), topic('p', partition(3, 0, '0'))])
      .writeInt32(0).buffer;
    expect(readProduceResponse(version, body)).toEqual([
      ['orders/0', { errorCode: 0, baseOffset: 9_007_199_254_740_993n }],
      ['orders/1', { errorCode: 10, baseOffset: null }],
      ['p/3', { errorCode: 0, baseOffset: 0n }],
    ]);
  });
});
