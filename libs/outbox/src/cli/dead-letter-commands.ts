import type { Command } from 'commander';
import type * as kafkajs from 'kafkajs';
import type { LetterPlace } from '../operate/dead-letters';
import type { KafkaClient } from '../operate/kafka-topic';
import { Failure } from './failure';
import { letterPlace, list, wholeNumber } from './parse';
import { table } from './print';
import type { Run } from './run';

interface Brokers {
  readonly brokers: readonly string[];
}

/** Commands about what consumers have given up. */
export function deadLetterCommands(program: Command, run: Run): void {
  const command = program.command('dead-letters').description('what consumers have given up');

  withBrokers(command.command('list <topic>').description('records of a dead-letter topic'))
    .option('--after <place>', 'the next of an earlier page')
    .option('--limit <n>', 'at most so many', wholeNumber)
    .action(run(async ({ deadLetters }, print, { brokers, ...page }: Brokers & { after?: string; limit?: number }, topic: string) => {
      const { letters, next } = await deadLetters.list(await kafka(brokers), topic, page);
      const rows = letters.map(({ partition, offset, at, consumer, attempts, messageId, type, key, reason }) => [`${partition}@${offset}`, at, consumer, attempts, type, key, messageId, reason]);
      print({ letters, next }, `${table(['place', 'since', 'consumer', 'attempts', 'type', 'key', 'message id', 'reason'], rows)}${next === null ? '' : `\nMore with --after ${next}`}`);
    }));

  withBrokers(command.command('replay <topic> <places...>').description('send messages back to where they came from; places such as 0@15'))
    .requiredOption('--reason <text>', 'why, for those who look later')
    .option('--by <name>', 'who acts (default: the user of this machine)')
    .action(run(async ({ deadLetters, operator }, print, { brokers, reason, by }: Brokers & { reason: string; by?: string }, topic: string, places: readonly string[]) => {
      const chosen: LetterPlace[] = places.map(letterPlace);
      const result = await deadLetters.replay(await kafka(brokers), topic, chosen, operator({ reason, by }));
      const name = ({ partition, offset }: LetterPlace): string => `${partition}@${offset}`;
      const rest = [...result.notFound.map((place) => `not found: ${name(place)}`), ...result.skipped.map((place) => `skipped: ${name(place)}: ${place.why}`)];
      print(result, [`replay: ${result.replayed} done`, ...rest].join('\n'));
      if (result.notFound.length > 0) throw new Failure('', 1);
    }));
}

function withBrokers(command: Command): Command {
  return command.requiredOption('--brokers <list>', 'brokers of Kafka, such as kafka:9092,kafka2:9092', list);
}

async function kafka(brokers: readonly string[]): Promise<KafkaClient> {
  let library: typeof kafkajs;
  try {
    library = await import('kafkajs');
  } catch (cause) {
    throw new Failure('Dead letters need the package kafkajs: npm install kafkajs.', 1, { cause });
  }
  return new library.Kafka({ clientId: 'outbox-cli', brokers: [...brokers], logLevel: library.logLevel.NOTHING });
}
