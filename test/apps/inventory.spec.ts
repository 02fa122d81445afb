import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Reservation } from '../../apps/inventory/src/reservation.entity.js';
import { StockItem } from '../../apps/inventory/src/stock-item.entity.js';
import { PATIENT } from './patience';
import { TestShop } from './shop';

describe('inventory', () => {
  let shop: TestShop;

  beforeEach(async () => {
    shop = await TestShop.open();
  });
  afterEach(() => shop.close());

  const stockOf = (productId: string) => shop.dataSource.getRepository(StockItem).findOneByOrFail({ productId });
  const reservations = () => shop.dataSource.getRepository(Reservation).find();

  it('reserves stock for an order, and says so to the world', async () => {
    const orderId = await shop.place('tea', 3);
    await shop.settled();

    expect(await stockOf('tea')).toEqual({ productId: 'tea', available: 997, reserved: 3 });
    expect(await reservations()).toEqual([{ orderId, productId: 'tea', quantity: 3, status: 'reserved' }]);
    const [record] = shop.broker.records('stock');
    expect(record?.key).toBe('tea');
    expect(JSON.parse(record?.value ?? '')).toEqual({ orderId, productId: 'tea', quantity: 3, available: 997 });
  });

  it('reserves once, however often the message comes', async () => {
    await shop.place('tea', 3);
    await shop.settled();
    const [record] = shop.broker.records('orders');
    shop.broker.redeliver('orders', () => true);
    for (let copies = 0; copies < 3; copies += 1) {
      shop.broker.produce('orders', { key: record?.key ?? null, value: record?.value ?? null, headers: record?.headers ?? {} });
    }
    await shop.settled();

    expect(shop.broker.records('orders')).toHaveLength(4);
    expect(await stockOf('tea')).toEqual({ productId: 'tea', available: 997, reserved: 3 });
    expect(shop.broker.records('stock')).toHaveLength(1);
  });

  it('reserves once when the relay loses an answer and sends again', async () => {
    shop.broker.loseAnswers(1);
    await shop.place('tea', 3);
    await expect.poll(() => shop.broker.records('orders').length, PATIENT).toBe(2);
    await shop.settled();

    expect(new Set(shop.broker.records('orders').map(({ headers }) => headers['id'])).size).toBe(1);
    expect((await stockOf('tea')).reserved).toBe(3);
  });

  it('keeps a shortage as an answer, and emits nothing', async () => {
    await shop.place('tea', 999);
    await shop.settled();
    const orderId = await shop.place('tea', 2);
    const unknown = await shop.place('unicorn', 1);
    await shop.settled();

    expect(await stockOf('tea')).toEqual({ productId: 'tea', available: 1, reserved: 999 });
    expect(await reservations()).toContainEqual({ orderId, productId: 'tea', quantity: 2, status: 'short' });
    expect(await reservations()).toContainEqual({ orderId: unknown, productId: 'unicorn', quantity: 1, status: 'short' });
    expect(shop.broker.records('stock')).toHaveLength(1);
  });

  it('shows the stock, as data and as a page that trusts no product name', async () => {
    await shop.dataSource.getRepository(StockItem).insert({ productId: '<script>"&\'', available: 1, reserved: 0 });
    const { body } = await shop.http().get('/stock').expect(200);
    expect(body).toContainEqual({ productId: 'tea', available: 1000, reserved: 0 });

    const { text } = await shop.http().get('/').expect(200).expect('content-type', /text\/html/);
    expect(text).toContain('<td>tea</td><td>1000</td><td>0</td>');
    expect(text).toContain('<td>&lt;script&gt;&quot;&amp;&#39;</td>');
    expect(text).not.toContain('<script>');
  });
});
