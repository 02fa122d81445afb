import type { Type } from '@nestjs/common';
import { OutboxEvent } from 'nestjs-transactional-outbox';

/** Keys that the messages are spread over. */
export const KEYS = 2000;
/** Length of a payload in bytes. */
const PAYLOAD_BYTES = 300;

export interface BenchEvent {
  n: number;
  text: string;
}

/** An event class for the topic: what a user would write, with a topic that is known at run time only. */
export function eventClass(topic: string): Type<BenchEvent> {
  @OutboxEvent({ type: 'bench.event', topic, key: ({ n }: BenchHappened) => keyOf(n) })
  class BenchHappened implements BenchEvent {
    n!: number;
    text!: string;
  }
  return BenchHappened;
}

export function makeEvent(type: Type<BenchEvent>, n: number): BenchEvent {
  return Object.assign(new type(), fieldsOf(n));
}

export function keyOf(n: number): string {
  return `key-${n % KEYS}`;
}

/** The payload as the library writes it. */
export function payloadOf(n: number): string {
  return JSON.stringify(fieldsOf(n));
}

function fieldsOf(n: number): BenchEvent {
  const room = PAYLOAD_BYTES - JSON.stringify({ n, text: '' }).length;
  return { n, text: 'x'.repeat(room) };
}
