import type { Type } from '@nestjs/common';
import { EventDuplicateError } from '../errors';
import { eventOptionsOf } from '../event/outbox-event.decorator';

/** Which class emits which type: one class for each. */
export class EventTypes {
  private readonly classes = new Map<string, Type<object>>();

  /** @throws EventDuplicateError when another class has the type; EventNotDecoratedError */
  add(event: Type<object>): void {
    const { type } = eventOptionsOf(event);
    const known = this.classes.get(type);
    if (known === undefined) {
      this.classes.set(type, event);
    } else if (known !== event) {
      throw new EventDuplicateError(`${known.name} and ${event.name} are both events of the type "${type}".`);
    }
  }
}
