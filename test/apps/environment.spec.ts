import { describe, expect, it } from 'vitest';
import { inventoryEnvironment } from '../../apps/inventory/src/environment.js';
import { ordersEnvironment } from '../../apps/orders/src/environment.js';
import { relayEnvironment } from '../../apps/relay/src/environment.js';
import { EnvironmentError } from '../../apps/shop/src/environment.js';

const COMPLETE = { DATABASE_URL: 'mysql://root:secret@localhost:3306/shop', KAFKA_BROKERS: 'a:9092, b:9092' };

describe('the environment of an app', () => {
  it.each([
    ['orders', ordersEnvironment],
    ['inventory', inventoryEnvironment],
    ['relay', relayEnvironment],
  ])('of %s: what is missing is named, all of it at once', (_, read) => {
    expect(() => read({})).toThrow(EnvironmentError);
    expect(() => read({})).toThrow(/DATABASE_URL is missing[^]*KAFKA_BROKERS is missing/);
    expect(() => read({ ...COMPLETE, KAFKA_BROKERS: ' ' })).toThrow(/KAFKA_BROKERS is missing/);
  });

  it('has defaults for the rest', () => {
    const brokers = ['a:9092', 'b:9092'];
    const databaseUrl = COMPLETE.DATABASE_URL;
    expect(ordersEnvironment(COMPLETE)).toEqual({ port: 3000, databaseUrl, brokers, kafkaClient: 'kafkajs', relay: true });
    expect(inventoryEnvironment({ ...COMPLETE, PORT: '8080', OUTBOX_RELAY: 'off' })).toEqual({
      port: 8080,
      databaseUrl,
      brokers,
      kafkaClient: 'kafkajs',
      relay: false,
    });
    expect(relayEnvironment({ ...COMPLETE, OUTBOX_CONCURRENCY: '4', OUTBOX_POLL_INTERVAL: '250', OUTBOX_KAFKA_CLIENT: 'platformatic' })).toEqual({
      databaseUrl,
      brokers,
      kafkaClient: 'platformatic',
      relay: { concurrency: 4, pollInterval: 250 },
    });
  });

  it.each([
    ['PORT', '80000'],
    ['PORT', 'http'],
    ['OUTBOX_RELAY', 'false'],
    ['OUTBOX_KAFKA_CLIENT', 'rdkafka'],
    ['DATABASE_URL', 'mysql://localhost'],
    ['DATABASE_URL', 'sqlite://shop'],
  ])('refuses %s=%s by name', (name, value) => {
    expect(() => ordersEnvironment({ ...COMPLETE, [name]: value })).toThrow(new RegExp(`^.*\\n +${name} must be`));
  });

  it('never repeats a password', () => {
    expect(() => ordersEnvironment({ ...COMPLETE, DATABASE_URL: 'oracle://root:secret@host/shop' })).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining('secret') }),
    );
  });
});
