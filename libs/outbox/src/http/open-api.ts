import { MOST_AT_ONCE } from './requests';

const text = { type: 'string' };
const whole = { type: 'integer', minimum: 0 };
const time = { type: 'string', format: 'date-time' };
const flag = { type: 'boolean' };
const nullable = (schema: object): object => ({ anyOf: [schema, { type: 'null' }] });
const list = (items: object): object => ({ type: 'array', items });
const all = (properties: Record<string, object>): object => ({ type: 'object', required: Object.keys(properties), properties });
const ref = (name: string): object => ({ $ref: `#/components/schemas/${name}` });

const state = { type: 'string', enum: ['pending', 'held', 'dead', 'sent', 'discarded', 'lost'] };
const filter = { topic: text, key: text, type: text, state, from: time, to: time };
const reason = { type: 'string', maxLength: 500, description: 'why, for those who look later' };

const placeParts = { partition: whole, offset: text };
const place = all(placeParts);

const SCHEMAS = {
  Message: {
    ...all({ id: text, messageId: { type: 'string', format: 'uuid' }, topic: text, key: nullable(text), type: text, state, attempts: whole, lastError: nullable(text), createdAt: time, sentAt: nullable(time) }),
    description: 'With content=true also payload and headers.',
  },
  MessagePage: all({ messages: list(ref('Message')), next: nullable(text) }),
  Stats: all({
    pending: whole,
    held: whole,
    dead: whole,
    oldestAge: { ...nullable(whole), description: 'ms' },
    topics: list(all({ topic: text, pending: whole, held: whole, dead: whole, blockedKeys: whole, paused: flag })),
    sampled: flag,
    paused: flag,
  }),
  Queue: all({
    lanes: list(all({ lane: whole, pending: whole, held: whole })),
    laneCount: whole,
    keys: list(all({ topic: text, key: text, state: text, waiting: whole, retryAt: nullable(time) })),
    moreKeys: flag,
    head: text,
    added: nullable(whole),
  }),
  ActResult: all({ done: whole, notFound: list(text), skipped: list(all({ id: text, state })) }),
  DeadLetter: all({ partition: whole, offset: text, at: time, consumer: nullable(text), error: nullable(text), reason: nullable(text), attempts: nullable(whole), origin: nullable(all({ topic: text, partition: whole, offset: text })), messageId: nullable(text), type: nullable(text), key: nullable(text) }),
  DeadLetterPage: all({ letters: list(ref('DeadLetter')), next: nullable(text) }),
  ReplayResult: all({ replayed: whole, notFound: list(place), skipped: list(all({ ...placeParts, why: text })) }),
  Done: all({ done: flag }),
  Pass: all({ outcome: { type: 'string', enum: ['done', 'busy', 'stopped'] }, purged: all({ sent: whole, dead: whole, consumed: whole, failures: whole, audit: whole, sequences: whole, history: whole }) }),
  AuditedAct: all({ id: text, act: text, by: text, reason: text, target: { description: 'as it was given' }, outcome: { type: 'string', enum: ['begun', 'done', 'failed'] }, result: { description: 'what has come of it' }, beganAt: time, endedAt: nullable(time) }),
  AuditPage: all({ acts: list(ref('AuditedAct')), next: nullable(text) }),
  Me: all({ by: text, canReadContent: flag }),
  Failure: { type: 'object', required: ['statusCode', 'message'], properties: { statusCode: whole, code: text, message: {} } },
  MessagesRequest: {
    type: 'object',
    required: ['reason'],
    properties: {
      reason,
      ids: { ...list(text), minItems: 1, maxItems: 1000 },
      filter: { type: 'object', required: ['limit'], properties: { ...filter, limit: { type: 'integer', minimum: 1, maximum: MOST_AT_ONCE } } },
    },
    oneOf: [{ required: ['ids'] }, { required: ['filter'] }],
  },
  KeyRequest: all({ topic: text, key: text, reason }),
  ReplayRequest: all({ places: { ...list(place), minItems: 1, maxItems: 1000 }, reason }),
  PauseRequest: { type: 'object', required: ['reason'], properties: { topic: text, reason } },
  PurgeRequest: { type: 'object', required: ['reason'], properties: { reason, sent: whole, dead: whole, consumed: whole, failures: whole, audit: whole, sequences: whole, history: whole, archive: flag } },
};

const json = (schema: object): object => ({ content: { 'application/json': { schema } } });
const failures = (codes: readonly number[]): object => Object.fromEntries(codes.map((code) => [code, { description: FAILURES[code], ...json(ref('Failure')) }]));
const FAILURES: Readonly<Record<number, string>> = {
  400: 'The request cannot be right; nothing was done.',
  403: 'Not for you, or not from there.',
  404: 'Not in the log.',
  415: 'The body is not JSON.',
  503: 'A relay keeps the lanes; try again.',
};

function get(summary: string, answer: object, query: Record<string, object> = {}, more: readonly number[] = []): object {
  const parameters = Object.entries(query).map(([name, schema]) => ({ name, in: 'query', schema }));
  return { get: { summary, parameters, responses: { 200: { description: 'Found.', ...json(answer) }, ...failures([400, 403, ...more]) } } };
}

function post(summary: string, request: string, answer: string): object {
  return {
    post: {
      summary,
      requestBody: { required: true, ...json(ref(request)) },
      responses: { 200: { description: 'Done.', ...json(ref(answer)) }, ...failures([400, 403, 415, 503]) },
    },
  };
}

/** Operations that are there with a client of Kafka only. */
function deadLetterPaths(): object {
  const topic = { parameters: [{ name: 'topic', in: 'path', required: true, schema: text, description: 'a dead-letter topic' }] };
  return {
    '/dead-letters/{topic}': { ...topic, ...get('What consumers have given up', ref('DeadLetterPage'), { after: text, limit: { type: 'integer', minimum: 1, maximum: 1000 } }) },
    '/dead-letters/{topic}/replay': { ...topic, ...post('Send messages back to where they came from', 'ReplayRequest', 'ReplayResult') },
  };
}

/** The operations, as a document of OpenAPI 3.1. */
export function openApi({ deadLetters }: { readonly deadLetters: boolean }): object {
  return {
    openapi: '3.1.0',
    info: { title: 'Outbox', version: '1', description: 'Looks into an outbox, and repairs it.' },
    servers: [{ url: '.' }],
    paths: {
      '/me': get('Who asks, and what they may read', ref('Me')),
      '/stats': get('What waits, by topic', ref('Stats')),
      '/queue': get('Where it waits: lanes and keys; how far the log is', ref('Queue'), { since: text }),
      '/audit': get('What operators have done, newest first', ref('AuditPage'), { act: text, by: text, message: text, from: time, to: time, before: text, limit: { type: 'integer', minimum: 1, maximum: 1000 } }),
      '/messages': get('A page of messages', ref('MessagePage'), { ...filter, after: text, limit: { type: 'integer', minimum: 1, maximum: 1000 } }),
      '/messages/{id}': {
        parameters: [{ name: 'id', in: 'path', required: true, schema: text, description: 'in the log, or the message id' }],
        ...get('One message', ref('Message'), { content: flag }, [404]),
      },
      '/messages/requeue': post('Have dead messages sent again', 'MessagesRequest', 'ActResult'),
      '/messages/discard': post('Decide that messages are not sent', 'MessagesRequest', 'ActResult'),
      '/messages/replay': post('Send messages once more', 'MessagesRequest', 'ActResult'),
      '/keys/block': post('Stop a key', 'KeyRequest', 'Done'),
      '/keys/release': post('Let a key go on', 'KeyRequest', 'Done'),
      '/pause': post('Pause all relays, or a topic', 'PauseRequest', 'Done'),
      '/resume': post('End a pause', 'PauseRequest', 'Done'),
      '/purge': post('Take old rows away now', 'PurgeRequest', 'Pass'),
      ...(deadLetters ? deadLetterPaths() : {}),
      '/openapi.json': get('This document', { type: 'object' }),
    },
    components: { schemas: SCHEMAS },
  };
}
