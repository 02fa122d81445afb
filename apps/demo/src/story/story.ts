import type { Checklist } from '../checklist.js';
import type { InMemoryShop } from '../in-memory-shop.js';
import type { Narrator } from '../narrator.js';
import { everythingCompared } from './comparison.js';
import { deliveredAgain, inventoryReserves, orderIsPlaced, relayPublishes } from './first-order.js';
import { Stage } from './stage.js';
import { orderFails, relayDies } from './troubles.js';

export async function tellStory(shop: InMemoryShop, narrator: Narrator, checklist: Checklist): Promise<void> {
  const stage = new Stage(shop, narrator, checklist);
  narrator.title('An order and its event: both or neither');
  narrator.say(
    'A shop saves an order in its database and tells the warehouse over Kafka. Those are two systems, and a program can ' +
      'die between them: then the order is there and nobody packs it, or the warehouse packs an order that is not there. ' +
      'With an outbox the shop writes the message into its own database, in the same transaction as the order, and a ' +
      'relay brings it to Kafka afterwards.',
  );
  narrator.line();
  narrator.say(
    'What follows really happens, in this one process. The database is SQLite in memory and the broker is a small one in ' +
      'memory; shop and library are the code that also runs on MySQL and Kafka.',
  );
  await shop.relay.stop();
  const order = await orderIsPlaced(stage);
  await relayPublishes(stage, order);
  await inventoryReserves(stage, order);
  await deliveredAgain(stage, order);
  await orderFails(stage);
  await relayDies(stage);
  await everythingCompared(stage);
}
