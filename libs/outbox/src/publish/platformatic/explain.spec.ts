import { MultipleErrors, NetworkError, produceV9, ProtocolError, ResponseError, TimeoutError, UserError } from '@platformatic/kafka';
import { describe, expect, it } from 'vitest';
import { answersWithin, explain } from './explain';

const refusedBy = (topics: readonly { name: string; partitionResponses: { index: number; errorCode: number; baseOffset: bigint }[] }[]) =>
  new ResponseError(produceV9.api.key, produceV9.api.version, { '/responses/0/partition_responses/0': [10, null] }, { responses: topics });

describe('an error of @platformatic/kafka', () => {
  it('is named as the broker named it, however it is wrapped', () => {
    const denied = new ProtocolError('TOPIC_AUTHORIZATION_FAILED');
    for (const error of [denied, new MultipleErrors('failed', [denied]), new NetworkError('failed', { cause: denied })]) {
      expect(explain(error)).toMatchObject({ code: 'TOPIC_AUTHORIZATION_FAILED' });
    }
  });

  it('is named by what the socket said, else in a word of no client', () => {
    const socket = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
    expect(explain(new MultipleErrors('none', [new NetworkError('failed', { cause: socket })]))).toEqual({
      code: 'ECONNREFUSED',
      message: 'connect ECONNREFUSED',
    });
    expect(explain(new NetworkError('Connection closed')).code).toBe('CONNECTION_FAILED');
    expect(explain(new UserError('Unknown topic orders.')).code).toBe('UNKNOWN_TOPIC_OR_PARTITION');
    expect(explain(new TypeError('a fault of the client')).code).toBe('CLIENT_ERROR');
    expect(explain('not even an error')).toEqual({ code: 'CLIENT_ERROR', message: 'not even an error' });
    expect(explain(new TimeoutError('Request timed out')).message).toBe('Request timed out');
  });

  it('tells what was stored and what was refused of a batch', () => {
    const error = Object.assign(
      new MultipleErrors('Producing messages failed.', [
        refusedBy([{ name: 'a', partitionResponses: [{ index: 0, errorCode: 10, baseOffset: -1n }, { index: 1, errorCode: 0, baseOffset: 7n }] }]),
        new NetworkError('Connection closed'),
      ]),
      { produced: { offsets: [{ topic: 'b', partition: 2, offset: 3n }] } },
    );
    expect([...answersWithin(error)]).toEqual([
      ['b/2', { errorCode: 0, baseOffset: 3n }],
      ['a/0', { errorCode: 10, baseOffset: null }],
      ['a/1', { errorCode: 0, baseOffset: 7n }],
    ]);
  });
});
