import { Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import type { Repository } from 'typeorm';
import { StockItem } from './stock-item.entity.js';

/** What the warehouse holds at first. */
export const FIRST_DELIVERY: Readonly<Record<string, number>> = {
  coffee: 1000,
  tea: 1000,
  cocoa: 1000,
  milk: 1000,
  sugar: 1000,
  mug: 1000,
};

/** Fills an empty warehouse when the app starts; what is there already is left alone. */
@Injectable()
export class StockDelivery implements OnApplicationBootstrap {
  constructor(@InjectRepository(StockItem) private readonly items: Repository<StockItem>) {}

  async onApplicationBootstrap(): Promise<void> {
    const items = Object.entries(FIRST_DELIVERY).map(([productId, available]) => ({ productId, available, reserved: 0 }));
    await this.items.createQueryBuilder().insert().values(items).orIgnore().execute();
  }
}
