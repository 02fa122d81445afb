import { IsInt, IsOptional, IsString } from 'class-validator';
import { OutboxEvent } from 'nestjs-transactional-outbox';

/** Topics, and the largest batch that each takes. */
export const TOPICS = {
  moves: { name: 'ledger-moves', maxBytes: 60_000 },
  notes: { name: 'ledger-notes', maxBytes: 1_000_000 },
  sights: { name: 'ledger-sights', maxBytes: 1_000_000 },
} as const;

export const PARTITIONS = 3;

/** Larger than `ledger-moves` takes, and small enough for the outbox. */
export const POISON_BYTES = 90_000;

/** What all events carry, so that a record can be told without the library. */
export abstract class LedgerEvent {
  @IsString() eventId!: string;
  @IsString() @IsOptional() key!: string | null;
  @IsInt() @IsOptional() seq!: number | null;
  @IsString() pad!: string;
}

@OutboxEvent({ type: 'ledger.moved', topic: TOPICS.moves.name, key: (event: LedgerMoved) => event.key ?? '' })
export class LedgerMoved extends LedgerEvent {}

@OutboxEvent({
  type: 'ledger.noted',
  topic: TOPICS.notes.name,
  key: (event: LedgerNoted) => event.key ?? '',
  headers: (event) => ({ 'x-pad': String(event.pad.length) }),
})
export class LedgerNoted extends LedgerEvent {}

/** Has no key, and so no order. */
@OutboxEvent({ type: 'ledger.seen', topic: TOPICS.sights.name })
export class LedgerSeen extends LedgerEvent {}

/** What is in a record's value. */
export function readValue(value: string | null): { readonly eventId: string } | null {
  try {
    const parsed: unknown = JSON.parse(value ?? 'null');
    if (typeof parsed !== 'object' || parsed === null || !('eventId' in parsed)) return null;
    return typeof parsed.eventId === 'string' ? { eventId: parsed.eventId } : null;
  } catch {
    return null;
  }
}
