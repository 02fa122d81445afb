import { InMemoryBroker } from 'nestjs-transactional-outbox/in-memory';
import { afterEach, describe, expect, it } from 'vitest';
import { PATIENT } from './patience';
import { TestShop } from './shop';

describe('health', () => {
  let shop: TestShop;

  afterEach(() => shop.close());

  const status = async (): Promise<string> => {
    const { body } = await shop.http().get('/health').expect(200);
    return (body as { status: string }).status;
  };

  it('is up when messages flow', async () => {
    shop = await TestShop.open();
    await shop.place('tea', 1);
    await shop.settled();
    await expect.poll(status, PATIENT).toBe('up');
  });

  it('is degraded while the broker is away: the app starts, takes orders and catches up later', async () => {
    const broker = new InMemoryBroker();
    broker.fail('outage');
    shop = await TestShop.open(broker);
    // Before there is anything to send.
    await expect.poll(status, PATIENT).toBe('degraded');
    await shop.place('tea', 1);
    expect(await status()).toBe('degraded');
    const { body } = await shop.http().get('/health').expect(200);
    expect(body).toMatchObject({ backlog: { pending: 1 }, relay: { running: true, trouble: { stage: 'broker' } } });

    broker.heal();
    await shop.settled();
    await expect.poll(status, PATIENT).toBe('up');
    expect(broker.records('orders')).toHaveLength(1);
    expect(await shop.count('reservation')).toBe(1);
  });

  it('is down, with 503, when the database does not answer', async () => {
    shop = await TestShop.open();
    await shop.dataSource.query('ALTER TABLE outbox_pending RENAME TO outbox_pending_elsewhere');
    const { body } = await shop.http().get('/health').expect(503);
    expect(body).toMatchObject({ status: 'down', backlog: null });
  });
});
