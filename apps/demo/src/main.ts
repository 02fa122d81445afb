import { readEnvironment } from '../../shop/src/environment.js';
import { start } from '../../shop/src/start.js';
import { Checklist } from './checklist.js';
import { InMemoryShop } from './in-memory-shop.js';
import { Narrator } from './narrator.js';
import { paintFor } from './paint.js';
import { serve } from './serve.js';
import { tellStory } from './story/story.js';

await start(async () => {
  // Whatever happens on the way, only a story that was told to its end is a success.
  process.exitCode = 1;
  const begin = performance.now();
  const serving = process.argv.includes('--serve');
  const port = serving ? readEnvironment(process.env, (reader) => reader.port(3000)) : 0;
  const narrator = new Narrator((text) => process.stdout.write(text), paintFor(process.stdout, process.env));
  const checklist = new Checklist();

  const shop = await InMemoryShop.open(port);
  try {
    await tellStory(shop, narrator, checklist);
    narrator.conclude(checklist, performance.now() - begin);
    if (checklist.allHold) {
      process.exitCode = 0;
      if (serving) await serve(shop, narrator);
    }
  } finally {
    await shop.close();
  }
});
