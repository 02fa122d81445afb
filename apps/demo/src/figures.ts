import type { InMemoryBroker, InMemoryRecord } from 'nestjs-transactional-outbox/in-memory';
import type { DataSource } from 'typeorm';
import { Reservation } from '../../inventory/src/reservation.entity.js';
import { StockItem } from '../../inventory/src/stock-item.entity.js';
import { Order } from '../../orders/src/order.entity.js';
import { Topics } from '../../shop/src/topics.js';

export interface OutboxRow {
  readonly message_id: string;
  readonly event_type: string;
  readonly topic: string;
  readonly message_key: string;
  readonly payload: string;
}

/** Looks into tables and topics, past the code that is on show. */
export class Figures {
  constructor(
    private readonly dataSource: DataSource,
    private readonly broker: InMemoryBroker,
  ) {}

  orders(): Promise<Order[]> {
    return this.dataSource.getRepository(Order).find();
  }

  reservations(orderId: string): Promise<number> {
    return this.dataSource.getRepository(Reservation).countBy({ orderId });
  }

  allReservations(): Promise<Reservation[]> {
    return this.dataSource.getRepository(Reservation).find();
  }

  stock(productId: string): Promise<StockItem> {
    return this.dataSource.getRepository(StockItem).findOneByOrFail({ productId });
  }

  /** What the orders app has put into the outbox. */
  outbox(): Promise<OutboxRow[]> {
    return this.dataSource.query(
      `SELECT message_id, event_type, topic, message_key, payload FROM outbox_message
       WHERE event_type = 'order.created' ORDER BY id`,
    );
  }

  /** Messages of all kinds that wait to be sent. */
  async pending(): Promise<number> {
    const [row] = await this.dataSource.query<{ count: number }[]>('SELECT COUNT(*) AS count FROM outbox_pending');
    return Number(row?.count);
  }

  /** Of these, those about orders. */
  async pendingOrders(): Promise<number> {
    const [row] = await this.dataSource.query<{ count: number }[]>(
      `SELECT COUNT(*) AS count FROM outbox_pending p JOIN outbox_message m ON m.id = p.id
       WHERE m.event_type = 'order.created'`,
    );
    return Number(row?.count);
  }

  topic(): InMemoryRecord[] {
    return this.broker.records(Topics.orders);
  }

  /** The records of one order. */
  recordsOf(orderId: string): InMemoryRecord[] {
    return this.topic().filter((record) => record.key === orderId);
  }
}
