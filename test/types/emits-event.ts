/** Checked by the compiler alone: what must not compile stands under `@ts-expect-error`. */
import { EmitsEvent, OutboxEvent, Transactional } from 'nestjs-transactional-outbox';

interface Order {
  readonly id: string;
  readonly quantity: number;
}

@OutboxEvent({ type: 'order.placed', topic: 'orders', key: (event: Placed) => event.orderId })
class Placed {
  orderId!: string;
  quantity!: number;

  describe(): string {
    return `${this.orderId}: ${this.quantity}`;
  }
}

@OutboxEvent({ type: 'order.noted', topic: 'orders' })
class Noted {
  readonly text!: string;
  readonly at?: Date;
}

const order: Order = { id: '1', quantity: 2 };
const placed = (from: Order): { orderId: string; quantity: number } => ({ orderId: from.id, quantity: from.quantity });

/** All of this is right. */
export class Right {
  @EmitsEvent(Placed, placed)
  async asynchronous(): Promise<Order> {
    return order;
  }

  @EmitsEvent(Placed, placed)
  synchronous(): Order {
    return order;
  }

  @Transactional()
  @EmitsEvent(Placed, (result: Order) => [placed(result), placed(result)])
  @EmitsEvent(Noted, (result: Order) => ({ text: result.id }))
  async several(): Promise<Order> {
    return order;
  }

  @EmitsEvent(Placed, (result: Order | null) => result && placed(result))
  async perhaps(): Promise<Order | null> {
    return null;
  }

  @EmitsEvent(Placed, () => null)
  @EmitsEvent(Placed, () => undefined)
  @EmitsEvent(Placed, () => [])
  async none(): Promise<void> {
    return undefined;
  }

  @EmitsEvent(Placed, (result: Order, [quantity, note]: [number, string]) => ({ orderId: result.id + note, quantity }))
  async withArguments(quantity: number, note: string): Promise<Order> {
    return { id: note, quantity };
  }

  @EmitsEvent(Placed)
  async theEventItself(): Promise<Placed> {
    return new Placed();
  }

  @EmitsEvent(Placed)
  async itsFields(): Promise<{ orderId: string; quantity: number }> {
    return placed(order);
  }

  @EmitsEvent(Placed)
  severalOfThem(): readonly Placed[] | null {
    return null;
  }

  @EmitsEvent(Placed, placed, { dataSource: 'audit' })
  async elsewhere(): Promise<Order> {
    return order;
  }

  @EmitsEvent(Noted, (result: { id: string }) => ({ text: result.id }))
  async ofAWiderMapper(): Promise<Order> {
    return order;
  }
}

/** None of this compiles. */
export class Wrong {
  // @ts-expect-error a field of the event is missing
  @EmitsEvent(Placed, (result: Order) => ({ orderId: result.id }))
  async missingField(): Promise<Order> {
    return order;
  }

  // @ts-expect-error a field has another type
  @EmitsEvent(Placed, (result: Order) => ({ orderId: result.quantity, quantity: result.quantity }))
  async wrongField(): Promise<Order> {
    return order;
  }

  // @ts-expect-error one of several is not an event
  @EmitsEvent(Placed, (result: Order) => [placed(result), { orderId: 'x' }])
  async wrongItem(): Promise<Order> {
    return order;
  }

  // @ts-expect-error a promise is no event: the mapper cannot wait
  @EmitsEvent(Placed, async (result: Order) => placed(result))
  async asynchronousMapper(): Promise<Order> {
    return order;
  }

  // @ts-expect-error the mapper is for another result
  @EmitsEvent(Placed, (result: Order) => placed(result))
  async otherResult(): Promise<string> {
    return '';
  }

  // @ts-expect-error the result may be nothing, which the mapper does not take
  @EmitsEvent(Placed, placed)
  async perhapsNothing(): Promise<Order | null> {
    return null;
  }

  // @ts-expect-error the mapper is for other arguments
  @EmitsEvent(Placed, (result: Order, [quantity]: [number]) => ({ orderId: result.id, quantity }))
  async otherArguments(_quantity: string): Promise<Order> {
    return order;
  }

  // @ts-expect-error the result is not the event
  @EmitsEvent(Placed)
  async notTheEvent(): Promise<Order> {
    return order;
  }

  // @ts-expect-error the result is not the event, and not synchronously either
  @EmitsEvent(Placed)
  notTheEventEither(): string {
    return '';
  }

  // @ts-expect-error not a class
  @EmitsEvent('order.placed')
  async notAClass(): Promise<Placed> {
    return new Placed();
  }

  // @ts-expect-error unknown option
  @EmitsEvent(Placed, placed, { source: 'audit' })
  async unknownOption(): Promise<Order> {
    return order;
  }

  // @ts-expect-error not a method
  @EmitsEvent(Placed, placed)
  field = order;
}

// @ts-expect-error the class has no such field for the key
@OutboxEvent({ type: 'a', topic: 'a', key: (event: Placed) => event.orderId })
export class Other {
  id!: string;
}

@OutboxEvent({
  type: 'b',
  topic: 'b',
  // @ts-expect-error a key is a string or a number
  key: (event: Keyed) => event.parts,
})
export class Keyed {
  parts!: string[];
}

// @ts-expect-error the topic is missing
@OutboxEvent({ type: 'c' })
export class NoTopic {}

// @ts-expect-error unknown option
@OutboxEvent({ type: 'd', topic: 'd', partition: 1 })
export class UnknownOption {}

// @ts-expect-error the version is a number
@OutboxEvent({ type: 'e', topic: 'e', version: '1' })
export class Version {}

// @ts-expect-error headers are strings
@OutboxEvent({ type: 'f', topic: 'f', headers: () => ({ n: 1 }) })
export class Headers {}
