#!/usr/bin/env node
import { Logger } from '@nestjs/common';
import { runCommand } from './program';

const err = (text: string): void => void process.stderr.write(`${text}\n`);
const note = (message: unknown): void => err(typeof message === 'string' ? message : JSON.stringify(message));

// The audit goes where progress goes: what is piped on is the result alone.
Logger.overrideLogger({ log: note, warn: note, error: note, debug: () => undefined, verbose: () => undefined });

async function main(): Promise<void> {
  process.exitCode = await runCommand(process.argv.slice(2), { out: (text) => void process.stdout.write(`${text}\n`), err });
}

void main();
