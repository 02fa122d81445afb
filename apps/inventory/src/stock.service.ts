import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { EmitsEvent, type EventFields, Transactional } from 'nestjs-transactional-outbox';
import { MoreThanOrEqual, type Repository } from 'typeorm';
import type { OrderCreated } from '../../shop/src/order-created.event.js';
import { StockReserved } from '../../shop/src/stock-reserved.event.js';
import { Reservation } from './reservation.entity.js';
import { StockItem } from './stock-item.entity.js';

@Injectable()
export class StockService {
  constructor(
    @InjectRepository(StockItem) private readonly items: Repository<StockItem>,
    @InjectRepository(Reservation) private readonly reservations: Repository<Reservation>,
  ) {}

  /** Sets stock aside and emits that it did; of a shortage it keeps a record and emits nothing. */
  @Transactional()
  @EmitsEvent(StockReserved)
  async reserve({ orderId, productId, quantity }: OrderCreated): Promise<EventFields<StockReserved> | null> {
    const enough = await this.take(productId, quantity);
    await this.reservations.insert({ orderId, productId, quantity, status: enough ? 'reserved' : 'short' });
    if (!enough) return null;
    const { available } = await this.items.findOneByOrFail({ productId });
    return { orderId, productId, quantity, available };
  }

  list(): Promise<StockItem[]> {
    return this.items.find({ order: { productId: 'ASC' } });
  }

  /** One conditional statement: whoever reads first and writes later sells the last piece twice. */
  private async take(productId: string, quantity: number): Promise<boolean> {
    const { affected } = await this.items
      .createQueryBuilder()
      .update()
      .set({ available: () => 'available - :quantity', reserved: () => 'reserved + :quantity' })
      .where({ productId, available: MoreThanOrEqual(quantity) })
      .setParameter('quantity', quantity)
      .execute();
    return affected === 1;
  }
}
