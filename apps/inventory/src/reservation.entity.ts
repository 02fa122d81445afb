import { Column, Entity, PrimaryColumn } from 'typeorm';

/** `short`: there was not enough left. An answer, not an error: trying again would not help. */
export type ReservationStatus = 'reserved' | 'short';

/** What became of an order in the warehouse. */
@Entity('reservation')
export class Reservation {
  @PrimaryColumn({ type: 'varchar', length: 36 })
  orderId!: string;

  @Column({ type: 'varchar', length: 64 })
  productId!: string;

  @Column({ type: 'int' })
  quantity!: number;

  @Column({ type: 'varchar', length: 16 })
  status!: ReservationStatus;
}
