import { context, propagation, trace, TraceFlags } from '@opentelemetry/api';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
import { type MessageContext, withMessageContext } from 'nestjs-transactional-outbox';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startApp, type TestApp } from '../setup/app';
import { Note, Notes } from '../setup/notes';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';

describe('the context of messages', () => {
  let app: TestApp;
  let notes: Notes;
  let own: MessageContext = {};
  const provider = new NodeTracerProvider();

  beforeAll(async () => {
    provider.register({ propagator: new W3CTraceContextPropagator() });
    app = await startApp('sqlite', { entities: [Note], providers: [Notes], outbox: { context: () => own } });
    notes = app.app.get(Notes);
  });
  afterAll(async () => {
    await app.close();
    await provider.shutdown();
    trace.disable();
    context.disable();
    propagation.disable();
  });
  beforeEach(async () => {
    own = {};
    for (const table of ['note', 'outbox_message', 'outbox_pending']) await app.dataSource.query(`DELETE FROM ${table}`);
  });

  async function stored(): Promise<Record<string, unknown>> {
    const rows = (await app.dataSource.query('SELECT * FROM outbox_message')) as Record<string, unknown>[];
    return rows[0] ?? {};
  }
  /** A span that a caller with `tracestate` has begun. */
  const remote = trace.setSpanContext(
    context.active(),
    Object.assign({ traceId: TRACE, spanId: SPAN, traceFlags: TraceFlags.SAMPLED, isRemote: true }, {}),
  );

  it('holds the active span, through all that is asynchronous', async () => {
    const traced = await trace.getTracer('test').startActiveSpan('place', async (span) => {
      await notes.transactions.run(async () => {
        await new Promise((resolve) => setImmediate(resolve));
        await notes.write(1);
      });
      span.end();
      return span.spanContext();
    });
    expect(await stored()).toMatchObject({ traceparent: `00-${traced.traceId}-${traced.spanId}-01` });
  });

  it('holds the span at the time of the event, not of the commit', async () => {
    let inner = '';
    await notes.transactions.run(() =>
      trace.getTracer('test').startActiveSpan('inner', async (span) => {
        inner = span.spanContext().spanId;
        await notes.write(1);
        span.end();
      }),
    );
    expect((await stored())['traceparent']).toContain(inner);
  });

  it('holds the state that the trace came with', async () => {
    const carrier = { traceparent: `00-${TRACE}-${SPAN}-01`, tracestate: 'vendor=1,other=2' };
    await context.with(propagation.extract(context.active(), carrier), () => notes.transactions.run(() => notes.write(1)));
    const row = await stored();
    expect(row).toMatchObject({ traceparent: carrier.traceparent });
    expect(JSON.parse(String(row['headers']))).toEqual({ tracestate: 'vendor=1,other=2' });
  });

  it('holds no trace outside of every span', async () => {
    await notes.transactions.run(() => notes.write(1));
    expect(await stored()).toMatchObject({ traceparent: null });
  });

  it('holds what the handled message says, over that the span, over that the app', async () => {
    const handled: MessageContext = {
      traceparent: '00-handled',
      tenantId: 'handled',
      correlationId: 'handled',
      causationId: 'handled',
      headers: { a: 'handled', b: 'handled' },
    };
    const write = (): Promise<void> => notes.transactions.run(() => notes.write(1));
    const clear = async (): Promise<void> => {
      for (const table of ['note', 'outbox_message', 'outbox_pending']) await app.dataSource.query(`DELETE FROM ${table}`);
    };

    await withMessageContext(handled, write);
    expect(await stored()).toMatchObject({ traceparent: '00-handled', tenant_id: 'handled', correlation_id: 'handled', causation_id: 'handled' });

    await clear();
    await context.with(remote, () => withMessageContext(handled, write));
    expect(await stored()).toMatchObject({ traceparent: `00-${TRACE}-${SPAN}-01`, correlation_id: 'handled' });

    await clear();
    own = { traceparent: '00-own', tenantId: 'own', headers: { b: 'own' } };
    await context.with(remote, () => withMessageContext(handled, write));
    const row = await stored();
    expect(row).toMatchObject({ traceparent: '00-own', tenant_id: 'own', correlation_id: 'handled', causation_id: 'handled' });
    expect(JSON.parse(String(row['headers']))).toMatchObject({ a: 'handled', b: 'own' });
  });

  it('that cannot be stored undoes the transaction', async () => {
    own = { tenantId: 'x'.repeat(191) };
    await expect(notes.transactions.run(() => notes.write(1))).rejects.toMatchObject({ code: 'OUTBOX_EVENT_INVALID' });
    own = { headers: { id: 'mine' } };
    await expect(notes.transactions.run(() => notes.write(1))).rejects.toMatchObject({ code: 'OUTBOX_EVENT_INVALID' });
    expect(await notes.rows()).toEqual([]);
  });
});
