import type { DataSource } from 'typeorm';
import { Reservation } from '../../../inventory/src/reservation.entity.js';
import { FIRST_DELIVERY } from '../../../inventory/src/stock-delivery.js';
import { StockItem } from '../../../inventory/src/stock-item.entity.js';
import { Order } from '../../../orders/src/order.entity.js';
import type { Checklist } from '../checklist.js';
import type { Auditor } from './auditor.js';
import { differingRepeats, firstAppearances, stepsOutOfOrder } from './topic-record.js';

/** Compares order rows, topics and reservations. */
export async function compare(checklist: Checklist, dataSource: DataSource, auditor: Auditor): Promise<void> {
  const [orders, reservations, items] = await Promise.all([
    dataSource.getRepository(Order).find(),
    dataSource.getRepository(Reservation).find(),
    dataSource.getRepository(StockItem).find(),
  ]);
  const events = firstAppearances(auditor.orders);
  const rows = new Set(orders.map(({ id }) => id));
  const published = new Set(events.map(({ key }) => key));
  checklist.check('order rows without an event on the topic', 0, orders.filter(({ id }) => !published.has(id)).length);
  checklist.check('events on the topic without an order row', 0, [...published].filter((id) => !rows.has(id)).length);
  checklist.check('different events on the topic', orders.length, events.length);
  checklist.check('repeats that differ from their first', 0, differingRepeats([...auditor.orders, ...auditor.stock]));

  const reserved = reservations.filter(({ status }) => status === 'reserved');
  checklist.check('orders with a reservation', orders.length, reserved.filter(({ orderId }) => rows.has(orderId)).length);
  checklist.check('reservations in all', orders.length, reservations.length);
  checklist.check('pieces reserved, as ordered', sum(orders.map(({ quantity }) => quantity)), sum(items.map((item) => item.reserved)));
  const delivered = sum(Object.values(FIRST_DELIVERY));
  checklist.check('pieces available and reserved', delivered, sum(items.map((item) => item.available + item.reserved)));

  const steps = firstAppearances(auditor.stock);
  checklist.check('stock events on the topic', reserved.length, steps.length);
  checklist.check('keys that they share (products)', items.length, new Set(steps.map(({ key }) => key)).size);
  checklist.check('stock events out of the order of their key', 0, stepsOutOfOrder(steps, FIRST_DELIVERY));
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
