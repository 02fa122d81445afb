import type { EntitySubscriberInterface, QueryRunner } from 'typeorm';

/**
 * An entity that collects its own domain events, as the `AggregateRoot` of `@nestjs/cqrs` does. Its uncommitted events
 * are emitted when the transaction in which it was saved or removed commits, and marked as committed after that.
 */
export interface EventSource {
  getUncommittedEvents(): readonly object[];
  uncommit(): void;
}

/** Kept beside the entities: no property that TypeORM could see, and there however the entity was made. */
const collected = new WeakMap<EventCollector, object[]>();

/** A base class for entities that collect their events. */
export abstract class EventCollector implements EventSource {
  /** Adds an event, to be emitted when the entity has been saved and its transaction commits. */
  protected record(event: object): void {
    const events = collected.get(this);
    if (events) events.push(event);
    else collected.set(this, [event]);
  }

  getUncommittedEvents(): readonly object[] {
    return [...(collected.get(this) ?? [])];
  }

  uncommit(): void {
    collected.delete(this);
  }
}

interface EntityEvent {
  readonly queryRunner: QueryRunner;
  readonly entity?: object | undefined;
}

/** Tells of each event source that TypeORM saves or removes. */
export class EventSourceSubscriber implements EntitySubscriberInterface {
  constructor(private readonly onWritten: (queryRunner: QueryRunner, source: EventSource) => void) {}

  afterInsert(event: EntityEvent): void {
    this.notice(event);
  }

  afterUpdate(event: EntityEvent): void {
    this.notice(event);
  }

  afterRemove(event: EntityEvent): void {
    this.notice(event);
  }

  afterSoftRemove(event: EntityEvent): void {
    this.notice(event);
  }

  private notice({ queryRunner, entity }: EntityEvent): void {
    if (isEventSource(entity)) this.onWritten(queryRunner, entity);
  }
}

function isEventSource(entity: object | undefined): entity is EventSource {
  return (
    entity !== undefined &&
    'getUncommittedEvents' in entity &&
    typeof entity.getUncommittedEvents === 'function' &&
    'uncommit' in entity &&
    typeof entity.uncommit === 'function'
  );
}
