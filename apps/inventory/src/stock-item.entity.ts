import { Column, Entity, PrimaryColumn } from 'typeorm';

/** How much of a product is there. */
@Entity('stock_item')
export class StockItem {
  @PrimaryColumn({ type: 'varchar', length: 64 })
  productId!: string;

  @Column({ type: 'int' })
  available!: number;

  @Column({ type: 'int' })
  reserved!: number;
}
