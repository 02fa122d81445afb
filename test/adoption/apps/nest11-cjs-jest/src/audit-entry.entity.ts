import { BaseEntity, Column, Entity, PrimaryGeneratedColumn } from 'typeorm';

/** Reached without a repository, by the static methods of `BaseEntity`. */
@Entity('audit_entries')
export class AuditEntry extends BaseEntity {
  @PrimaryGeneratedColumn() id!: number;
  @Column({ type: 'varchar' }) text!: string;
}
