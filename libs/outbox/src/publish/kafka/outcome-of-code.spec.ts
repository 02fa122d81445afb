import { describe, expect, it } from 'vitest';
import { outcomeOfCode } from './outcome-of-code';

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
