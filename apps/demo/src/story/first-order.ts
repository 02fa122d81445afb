import { Topics } from '../../../shop/src/topics.js';
import { waitUntil } from '../wait-until.js';
import { short, type Stage } from './stage.js';

export interface PlacedOrder {
  readonly orderId: string;
  readonly messageId: string;
}

/** The relay is off meanwhile, so that there is something to look at between commit and publishing. */
export async function orderIsPlaced(stage: Stage): Promise<PlacedOrder> {
  const { shop, narrator } = stage;
  const request = { productId: 'coffee', quantity: 2 };
  narrator.chapter('An order is placed: the row and its event commit together');
  narrator.say('The part that carries events to the broker, the relay, is still switched off.');
  const answer = await shop.post(request);
  const orderId = String(answer.body['id']);
  narrator.show('request', `POST /orders ${JSON.stringify(request)}`);
  narrator.show('answer', `${answer.status}, order ${short(orderId)}`);
  const orders = await shop.figures.orders();
  const outbox = await shop.figures.outbox();
  const [event] = outbox;
  narrator.say('One transaction wrote two rows: the order, and a note that the world has to hear of it.');
  narrator.show('orders', `${short(orderId)} coffee × 2`);
  narrator.show('outbox', `${event?.event_type} → topic ${event?.topic}, message ${short(event?.message_id)}`);
  stage.check('the order is accepted with HTTP', 201, answer.status);
  stage.check('order rows in the database', 1, orders.length);
  stage.check('events in the outbox', 1, outbox.length);
  stage.check('the order that the event is about', short(orderId), short(event?.message_key));
  stage.check('messages on the topic so far', 0, shop.figures.topic().length);
  return { orderId, messageId: event?.message_id ?? '' };
}

export async function relayPublishes(stage: Stage, order: PlacedOrder): Promise<void> {
  const { shop, narrator } = stage;
  narrator.chapter('The relay publishes what was committed');
  narrator.say('Now the relay is switched on. It reads the outbox and sends what waits there to the broker.');
  shop.relay.start();
  await waitUntil('the message is on the topic', () => shop.figures.topic().length > 0);
  const [record] = shop.figures.topic();
  narrator.show('topic', `${record?.topic}/${record?.partition} message ${short(record?.headers['id'])}`);
  narrator.show('value', record?.value ?? 'none');
  await stage.settled();
  stage.check('messages on the topic', 1, shop.figures.topic().length);
  stage.check('the id that it carries, as in the outbox', short(order.messageId), short(record?.headers['id']));
  stage.check('messages that still wait in the outbox', 0, await shop.figures.pending());
}

export async function inventoryReserves(stage: Stage, order: PlacedOrder): Promise<void> {
  const { shop, narrator } = stage;
  narrator.chapter('Inventory hears of it and reserves stock');
  narrator.say(
    'The handler runs in one transaction too: it notes the message id, sets the stock aside and emits an event of its own.',
  );
  const { available, reserved } = await shop.figures.stock('coffee');
  narrator.show('stock', `coffee: ${available} available, ${reserved} reserved`);
  stage.check('reservations for the order', 1, await shop.figures.reservations(order.orderId));
  stage.check('coffee reserved', 2, reserved);
  stage.check('coffee still available', 998, available);
}

export async function deliveredAgain(stage: Stage, order: PlacedOrder): Promise<void> {
  const { shop, narrator } = stage;
  narrator.chapter('The same message is delivered again, and skipped');
  narrator.say(
    'Brokers deliver at least once: after a crash or a rebalance a message comes again. A plain handler beside ours ' +
      'counts deliveries; it would have reserved twice.',
  );
  shop.broker.redeliver(Topics.orders, ({ headers }) => headers['id'] === order.messageId);
  await stage.settled();
  const { reserved } = await shop.figures.stock('coffee');
  narrator.show('stock', `coffee: ${reserved} reserved, as before`);
  stage.check('deliveries that a plain handler acted on', 2, shop.deliveries.of(order.messageId));
  stage.check('reservations for the order after the repeat', 1, await shop.figures.reservations(order.orderId));
  stage.check('coffee reserved after the repeat', 2, reserved);
}
