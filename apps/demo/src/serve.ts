import { once } from 'node:events';
import type { InMemoryShop } from './in-memory-shop.js';
import type { Narrator } from './narrator.js';

/** Keeps the shop open until Ctrl+C. */
export async function serve({ app, url }: InMemoryShop, narrator: Narrator): Promise<void> {
  const order = JSON.stringify({ productId: 'tea', quantity: 1 });
  app.useLogger(['warn', 'error', 'fatal']);
  narrator.line();
  narrator.line('The shop stays open. Try:');
  narrator.line();
  narrator.line(`  curl -X POST ${url}/orders -H 'content-type: application/json' -d '${order}'`);
  narrator.line(`  curl ${url}/orders`);
  narrator.line(`  curl ${url}/stock`);
  narrator.line(`  curl ${url}/health`);
  narrator.line();
  narrator.line(`The stock as a page: ${url}/   Ctrl+C ends it.`);
  await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
}
