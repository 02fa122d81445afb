import { Column, Entity, PrimaryGeneratedColumn } from 'typeorm';

@Entity('orders')
export class Order {
  @PrimaryGeneratedColumn('uuid') id!: string;
  @Column({ type: 'varchar' }) sku!: string;
  @Column({ type: 'integer' }) quantity!: number;
}
