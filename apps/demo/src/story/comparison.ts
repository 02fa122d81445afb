import { FIRST_DELIVERY } from '../../../inventory/src/stock-delivery.js';
import type { Stage } from './stage.js';

/** Everything against everything, at the end. */
export async function everythingCompared(stage: Stage): Promise<void> {
  const { shop, narrator } = stage;
  narrator.chapter('In the end tables and topic are compared');
  const orders = new Set((await shop.figures.orders()).map(({ id }) => id));
  const events = new Set(shop.figures.topic().map(({ key }) => key ?? ''));
  const reservations = (await shop.figures.allReservations()).map(({ orderId }) => orderId);
  stage.check('orders without an event on the topic', 0, [...orders].filter((id) => !events.has(id)).length);
  stage.check('events on the topic without an order', 0, [...events].filter((id) => !orders.has(id)).length);
  stage.check('orders reserved, each exactly once', orders.size, new Set(reservations).size);
  stage.check('reservations in all', orders.size, reservations.length);
  const items = await Promise.all(Object.keys(FIRST_DELIVERY).map((productId) => shop.figures.stock(productId)));
  const delivered = Object.values(FIRST_DELIVERY).reduce((sum, count) => sum + count, 0);
  const held = items.reduce((sum, { available, reserved }) => sum + available + reserved, 0);
  stage.check('pieces in the warehouse, available and reserved', delivered, held);
}
