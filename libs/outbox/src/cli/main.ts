#!/usr/bin/env node
import { Logger } from '@nestjs/common';
import { printable, toJson } from './print';
import { runCommand } from './program';

/** Whoever reads may leave before the end, as `head` does: what is being done is done to its end all the same. */
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
}

const CLEAR_LINE = '\r\u001b[2K';
let isLineOpen = false;
/** What is written over stays below what is said in between. */
const rewrite = (text: string): void => {
  process.stderr.write(`${isLineOpen ? CLEAR_LINE : ''}${text}`);
  isLineOpen = text !== '';
};
const err = (text: string): void => {
  rewrite('');
  process.stderr.write(`${text}\n`);
};
const note = (message: unknown): void => err(typeof message === 'string' ? printable(message) : toJson(message));

// The audit goes where progress goes: what is piped on is the result alone.
Logger.overrideLogger({ log: note, warn: note, error: note, debug: () => undefined, verbose: () => undefined });

async function main(): Promise<void> {
  process.exitCode = await runCommand(process.argv.slice(2), {
    out: (text) => void process.stdout.write(`${text}\n`),
    err,
    ...(process.stderr.isTTY ? { rewrite } : {}),
  });
}

void main();
