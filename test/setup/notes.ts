import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { IsInt, Max } from 'class-validator';
import { Outbox, OutboxEvent, TransactionRunner } from 'nestjs-transactional-outbox';
import { BaseEntity, Column, DataSource, Entity, PrimaryColumn, Repository } from 'typeorm';

/** The least of a business table. */
@Entity('note')
export class Note extends BaseEntity {
  @PrimaryColumn({ type: 'int' }) id!: number;
  @Column({ type: 'varchar', length: 100, default: '' }) text!: string;
}

@OutboxEvent({ type: 'note.written', topic: 'notes', key: (event: NoteWritten) => event.id })
export class NoteWritten {
  @IsInt() @Max(1_000_000) id!: number;

  static of(id: number): NoteWritten {
    return Object.assign(new NoteWritten(), { id });
  }
}

/** Writes rows together with events, so that a test can compare the two. */
@Injectable()
export class Notes {
  constructor(
    @InjectRepository(Note) readonly repository: Repository<Note>,
    readonly dataSource: DataSource,
    readonly outbox: Outbox,
    readonly transactions: TransactionRunner,
  ) {}

  /** A row and its event, in the transaction that the caller is in. */
  async write(id: number): Promise<void> {
    await this.repository.insert({ id });
    this.outbox.emit(NoteWritten.of(id));
  }

  async rows(): Promise<number[]> {
    const rows = await this.repository.find({ order: { id: 'ASC' } });
    return rows.map(({ id }) => id);
  }
}
