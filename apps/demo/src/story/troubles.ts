import { CardDeclinedError } from '../declined-payment.service.js';
import { waitUntil } from '../wait-until.js';
import { short, type Stage } from './stage.js';

export async function orderFails(stage: Stage): Promise<void> {
  const { shop, narrator } = stage;
  narrator.chapter('An order fails: no row, and no event either');
  narrator.say('First one that makes no sense: it is turned away at the door.');
  const invalid = { productId: 'tea', quantity: 0 };
  const answer = await shop.post(invalid);
  narrator.show('request', `POST /orders ${JSON.stringify(invalid)}`);
  narrator.show('answer', `${answer.status} ${String(answer.body['message'])}`);
  narrator.say('Then one whose card is declined, when its row is already written and its event already emitted.');
  const declined = await decline(stage);
  narrator.show('inside', `the transaction saw ${declined?.rowsInside ?? 0} order rows, then: ${declined?.message ?? 'no error'}`);
  await stage.settled();
  stage.check('the order that makes no sense is answered with HTTP', 400, answer.status);
  stage.check('order rows inside the failing transaction', 2, declined?.rowsInside ?? 0);
  stage.check('order rows after it rolled back', 1, (await shop.figures.orders()).length);
  stage.check('events in the outbox after it rolled back', 1, (await shop.figures.outbox()).length);
  stage.check('messages on the topic after it rolled back', 1, shop.figures.topic().length);
}

async function decline({ shop }: Stage): Promise<CardDeclinedError | undefined> {
  try {
    await shop.payment.placeAndPay({ productId: 'tea', quantity: 1 });
    return undefined;
  } catch (error) {
    if (error instanceof CardDeclinedError) return error;
    throw error;
  }
}

/** The broker has the message and the relay never learns it: the one window in which a message must go out twice. */
export async function relayDies(stage: Stage): Promise<void> {
  const { shop, narrator } = stage;
  narrator.chapter('The relay dies between sending and noting that it has sent');
  narrator.say('The broker stores the message, its answer never arrives, and the relay is gone.');
  shop.broker.loseAnswers(1);
  const answer = await shop.post({ productId: 'tea', quantity: 3 });
  const orderId = String(answer.body['id']);
  const records = () => shop.figures.recordsOf(orderId);
  await waitUntil('the broker has the message', () => records().length > 0);
  await shop.relay.stop();
  const waiting = await shop.figures.pendingOrders();
  narrator.show('outbox', `message ${short(records()[0]?.headers['id'])} counts as not sent, though it is on the topic`);
  narrator.say('A new relay takes over. It cannot know, so it sends again: rather twice than never.');
  shop.relay.start();
  await waitUntil('the message went out again', () => records().length > 1);
  await stage.settled();
  for (const { topic, partition, offset, headers } of records()) {
    narrator.show('topic', `${topic}/${partition} at ${offset}: message ${short(headers['id'])}`);
  }
  const ids = new Set(records().map(({ headers }) => headers['id']));
  const { reserved } = await shop.figures.stock('tea');
  narrator.show('stock', `tea: ${reserved} reserved`);
  stage.check('messages that the dead relay left as not sent', 1, waiting);
  stage.check('times that the message is on the topic', 2, records().length);
  stage.check('different ids among them', 1, ids.size);
  stage.check('deliveries that the plain handler acted on', 2, shop.deliveries.of([...ids][0] ?? ''));
  stage.check('reservations for that order', 1, await shop.figures.reservations(orderId));
  stage.check('tea reserved', 3, reserved);
}
