import { KafkaJSConnectionError, KafkaJSNonRetriableError, KafkaJSNumberOfRetriesExceeded, KafkaJSProtocolError } from 'kafkajs';
import { describe, expect, it } from 'vitest';
import { outcomeOfCode, outcomeOfError } from './classify';

describe('outcomeOfCode', () => {
  it.each([2, 10, 18, 32, 44, 87])('suspects a record of the unit for code %i', (code) => {
    expect(outcomeOfCode(code, 'orders/0')).toMatchObject({ status: 'refused-together', unit: 'orders/0' });
  });

  it.each([17, 29, 31, 43])('refuses all records of the topic for code %i', (code) => {
    expect(outcomeOfCode(code, 'orders/0')).toMatchObject({ status: 'refused' });
  });

  it.each([-1, 3, 5, 6, 7, 13, 19, 20, 45, 46, 56, 76, 12_345])('does not blame a record for code %i', (code) => {
    expect(outcomeOfCode(code, 'orders/0')).toMatchObject({ status: 'unknown' });
  });

  it('names the code', () => {
    expect(outcomeOfCode(10, 'orders/0')).toMatchObject({ failure: { code: 'MESSAGE_TOO_LARGE' } });
    expect(outcomeOfCode(12_345, 'orders/0')).toMatchObject({ failure: { code: 'KAFKA_ERROR_12345' } });
  });
});

describe('outcomeOfError', () => {
  const protocol = (type: string) => new KafkaJSProtocolError(Object.assign(new Error('said the broker'), { type, code: 1 }));

  it('looks behind the wrappers of the client', () => {
    const root = protocol('TOPIC_AUTHORIZATION_FAILED');
    for (const error of [root, Object.assign(new KafkaJSNonRetriableError(root), { cause: root }), wrapped(root)]) {
      expect(outcomeOfError(error)).toMatchObject({ status: 'refused', failure: { code: 'TOPIC_AUTHORIZATION_FAILED' } });
    }
  });

  it('never blames a record for the road', () => {
    const connection = new KafkaJSConnectionError('refused', { broker: 'b:1', code: 'ECONNREFUSED' });
    expect(outcomeOfError(wrapped(connection))).toMatchObject({ status: 'unknown', failure: { code: 'ECONNREFUSED' } });
    expect(outcomeOfError(protocol('UNKNOWN_TOPIC_OR_PARTITION'))).toMatchObject({ status: 'unknown' });
    expect(outcomeOfError(protocol('MESSAGE_TOO_LARGE')), 'without an answer that names the partition').toMatchObject({
      status: 'unknown',
    });
    expect(outcomeOfError(new TypeError('a fault of the client'))).toMatchObject({ status: 'unknown' });
    expect(outcomeOfError('not even an error')).toMatchObject({ status: 'unknown' });
  });
});

function wrapped(root: Error): Error {
  return new KafkaJSNumberOfRetriesExceeded(root, { retryCount: 0, retryTime: 0 });
}
