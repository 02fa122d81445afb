import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { TestShop } from './shop';

describe('orders', () => {
  let shop: TestShop;

  beforeEach(async () => {
    shop = await TestShop.open();
  });
  afterEach(() => shop.close());

  it('saves an order and publishes its event, keyed by the order', async () => {
    const orderId = await shop.place('tea', 2);
    await shop.settled();

    expect(await shop.count('orders')).toBe(1);
    const [record, ...others] = shop.broker.records('orders');
    expect(others).toEqual([]);
    expect(record?.key).toBe(orderId);
    expect(record?.headers['event_type']).toBe('order.created');
    expect(JSON.parse(record?.value ?? '')).toEqual({ orderId, productId: 'tea', quantity: 2 });
  });

  it.each([
    ['no body', {}],
    ['no product', { quantity: 1 }],
    ['an empty product', { productId: '', quantity: 1 }],
    ['a product name that is too long', { productId: 'x'.repeat(65), quantity: 1 }],
    ['a product that is no text', { productId: 7, quantity: 1 }],
    ['nothing ordered', { productId: 'tea', quantity: 0 }],
    ['half a piece', { productId: 'tea', quantity: 1.5 }],
    ['a number as text', { productId: 'tea', quantity: '1' }],
    ['an unknown property', { productId: 'tea', quantity: 1, status: 'paid' }],
  ])('turns away %s with 400, and keeps neither row nor event', async (_, body) => {
    await shop.http().post('/orders').send(body).expect(400);
    await shop.settled();
    expect(await shop.count('orders')).toBe(0);
    expect(await shop.count('outbox_message')).toBe(0);
    expect(shop.broker.records('orders')).toEqual([]);
  });

  it('shows orders, one and all', async () => {
    const id = await shop.place('mug', 1);
    const { body } = await shop.http().get(`/orders/${id}`).expect(200);
    expect(body).toMatchObject({ id, productId: 'mug', quantity: 1, status: 'placed' });
    await shop.http().get('/orders').expect(200, [body]);
    await shop.http().get('/orders/6f1c1de2-6a3a-4a52-9c5b-1d2a6a0c7a11').expect(404);
    await shop.http().get('/orders/first').expect(400);
  });
});
