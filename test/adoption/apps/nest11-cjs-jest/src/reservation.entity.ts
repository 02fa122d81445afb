import { Column, Entity, PrimaryGeneratedColumn } from 'typeorm';

@Entity('reservations')
export class Reservation {
  @PrimaryGeneratedColumn() id!: number;
  @Column({ type: 'varchar' }) orderId!: string;
  @Column({ type: 'varchar' }) summary!: string;
}
