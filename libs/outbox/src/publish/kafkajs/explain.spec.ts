import { KafkaJSConnectionError, KafkaJSNonRetriableError, KafkaJSNumberOfRetriesExceeded, KafkaJSProtocolError } from 'kafkajs';
import { describe, expect, it } from 'vitest';
import { outcomeOfFailure } from '../kafka/outcome-of-code';
import { explain } from './explain';

const outcomeOfError = (error: unknown) => outcomeOfFailure(explain(error));

describe('an error of kafkajs', () => {
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
