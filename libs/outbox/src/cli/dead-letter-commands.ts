import type { Command } from 'commander';
import type { LetterPlace } from '../operate/dead-letters';
import { type BrokerOptions, withBrokers } from './brokers';
import { Failure } from './failure';
import { kafkaClient } from './kafka-client';
import { given, letterPlace, wholeNumber } from './parse';
import { table } from './print';
import type { Run } from './run';

/** Commands about what consumers have given up. */
export function deadLetterCommands(program: Command, run: Run): void {
  const command = program.command('dead-letters').description('what consumers have given up');

  withBrokers(command.command('list <topic>').description('records of a dead-letter topic'))
    .option('--after <place>', 'the next of an earlier page')
    .option('--limit <n>', 'at most so many', wholeNumber)
    .action(run(async ({ deadLetters }, print, { after, limit, ...brokers }: BrokerOptions & { after?: string; limit?: number }, topic: string) => {
      const { letters, next } = await deadLetters.list(await kafkaClient(brokers), topic, given({ after, limit }));
      const rows = letters.map(({ partition, offset, at, consumer, attempts, messageId, type, key, reason }) => [`${partition}@${offset}`, at, consumer, attempts, type, key, messageId, reason]);
      print({ letters, next }, `${table(['place', 'since', 'consumer', 'attempts', 'type', 'key', 'message id', 'reason'], rows)}${next === null ? '' : `\nMore with --after ${next}`}`);
    }));

  withBrokers(command.command('replay <topic> <places...>').description('send messages back to where they came from; places such as 0@15'))
    .requiredOption('--reason <text>', 'why, for those who look later')
    .option('--by <name>', 'who acts (default: the user of this machine)')
    .action(run(async ({ deadLetters, operator }, print, { reason, by, ...brokers }: BrokerOptions & { reason: string; by?: string }, topic: string, places: readonly string[]) => {
      const chosen: LetterPlace[] = places.map(letterPlace);
      const result = await deadLetters.replay(await kafkaClient(brokers), topic, chosen, operator({ reason, by }));
      const name = ({ partition, offset }: LetterPlace): string => `${partition}@${offset}`;
      const rest = [...result.notFound.map((place) => `not found: ${name(place)}`), ...result.skipped.map((place) => `skipped: ${name(place)}: ${place.why}`)];
      print(result, [`replay: ${result.replayed} done`, ...rest].join('\n'));
      if (result.notFound.length > 0) throw new Failure('', 1);
    }));
}
