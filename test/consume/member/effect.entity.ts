import { Column, Entity, PrimaryGeneratedColumn } from 'typeorm';

/** An effect that nothing but the library keeps from happening twice. */
@Entity('effect')
export class Effect {
  @PrimaryGeneratedColumn() id!: number;
  @Column({ type: 'int' }) note!: number;
}
