import * as kafka from '@platformatic/kafka';
import { describe, expect, it } from 'vitest';
import { useReadableAnswers } from './produce-version';

describe('useReadableAnswers', () => {
  it.each([
    ['Produce', kafka.produceV11.api, 9],
    ['Produce', kafka.produceV8.api, 8],
    ['Metadata', kafka.metadataV12.api, 12],
  ])('%s, of which the broker has %o, is spoken in version %i', (name, offered, spoken) => {
    const producer = new kafka.Producer({ clientId: 'test', bootstrapBrokers: ['localhost:1'] });
    Object.assign(producer, { [kafka.kGetApi]: (_name: string, callback: (error: null, api: unknown) => void) => callback(null, offered) });
    useReadableAnswers(kafka, producer);
    let api: unknown;
    producer[kafka.kGetApi](name, (_error, given) => (api = given));
    expect(api).toHaveProperty('version', spoken);
  });
});
