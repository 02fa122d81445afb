import { Checklist } from './checklist.js';
import { services } from './kafka/services.js';
import { World } from './kafka/world.js';
import { Narrator } from './narrator.js';
import { paintFor } from './paint.js';

const begin = performance.now();
const narrator = new Narrator((text) => process.stdout.write(text), paintFor(process.stdout, process.env));
const checklist = new Checklist();
// Whatever happens on the way, only a run that came to its end is a success.
process.exitCode = 1;

narrator.title('The shop on MySQL and Kafka, in four processes');
const { up, down } = await services();
const { mysql, kafka, started } = await up(['mysql', 'kafka'], { log: (line) => narrator.say(line) });
const interruption = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interruption.abort());
try {
  const world = new World(mysql.url, kafka.brokers ?? [kafka.url]);
  narrator.say(`MySQL ${mysql.version}, Kafka ${kafka.version}; with a database and topics of this run's own.`);
  await world.create();
  try {
    // Before the shop's code is loaded: its topics and its data source come from the environment.
    Object.assign(process.env, world.variables);
    const { playKafkaRun } = await import('./kafka/run.js');
    await playKafkaRun({ world, narrator, checklist, signal: interruption.signal });
    narrator.conclude(checklist, performance.now() - begin);
    if (checklist.allHold) process.exitCode = 0;
  } finally {
    await world.remove();
  }
} catch (error) {
  if (interruption.signal.aborted) narrator.say('Interrupted.');
  else console.error(error);
} finally {
  if (started.length > 0) await down(started);
}
