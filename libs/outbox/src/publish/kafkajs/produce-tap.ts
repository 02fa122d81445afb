import type { PartitionAnswer } from '../kafka/session';
import { type ProduceRequest, readProduceResponse } from './produce-protocol';

/**
 * Follows the produce requests of one producer on the wire. kafkajs does not tell enough: when one partition fails it
 * rejects with that error alone, says neither which partition it was nor that the others are stored, and does so while
 * requests to other brokers are still on their way.
 */
export class ProduceTap {
  private readonly answers = new Map<string, PartitionAnswer>();
  private written = false;
  private readonly connections = new Set<TappedConnection>();
  private waiting: (() => void)[] = [];

  /** Forgets the batch before. */
  begin(): void {
    this.answers.clear();
    this.written = false;
  }

  answerOf(unit: string): PartitionAnswer | undefined {
    return this.answers.get(unit);
  }

  /** Whether anything of the batch can have reached a broker. */
  get anythingWritten(): boolean {
    return this.written;
  }

  /** Whether a request was written whose answer may still come. */
  get awaitsAnswer(): boolean {
    return [...this.connections].some((connection) => connection.awaitsAnswer);
  }

  /** Resolves when no answer can come any more. */
  async quiet(): Promise<void> {
    while (this.awaitsAnswer) await new Promise<void>((resolve) => this.waiting.push(resolve));
  }

  connect(): TappedConnection {
    const connection = new TappedConnection({
      wrote: () => (this.written = true),
      answered: (unit, answer) => this.answered(unit, answer),
      changed: () => this.changed(),
    });
    this.connections.add(connection);
    return connection;
  }

  private answered(unit: string, answer: PartitionAnswer): void {
    // Once stored is stored, whatever a later try of an idempotent producer is told.
    if (this.answers.get(unit)?.errorCode !== 0) this.answers.set(unit, answer);
  }

  private changed(): void {
    for (const connection of this.connections) if (connection.closed) this.connections.delete(connection);
    const waiting = this.waiting;
    this.waiting = [];
    for (const resolve of waiting) resolve();
  }
}

interface TapListener {
  wrote(): void;
  answered(unit: string, answer: PartitionAnswer): void;
  changed(): void;
}

/** One connection of the producer. */
export class TappedConnection {
  closed = false;
  private readonly pending = new Map<number, ProduceRequest>();
  private buffered: Buffer = Buffer.alloc(0);

  constructor(private readonly listener: TapListener) {}

  get awaitsAnswer(): boolean {
    return this.pending.size > 0;
  }

  onWrite(request: ProduceRequest): void {
    this.pending.set(request.correlationId, request);
    this.listener.wrote();
  }

  onData(chunk: Buffer): void {
    if (this.pending.size === 0 && this.buffered.length === 0 && isOneFrame(chunk)) return;
    this.buffered = this.buffered.length === 0 ? chunk : Buffer.concat([this.buffered, chunk]);
    while (this.buffered.length >= 4) {
      const end = 4 + Math.max(0, this.buffered.readInt32BE(0));
      if (this.buffered.length < end) break;
      this.onFrame(this.buffered.subarray(4, end));
      this.buffered = this.buffered.subarray(end);
    }
  }

  onClose(): void {
    this.closed = true;
    this.pending.clear();
    this.listener.changed();
  }

  private onFrame(frame: Buffer): void {
    if (frame.length < 4) return; // Without a correlation id: a step of an old SASL exchange.
    const request = this.pending.get(frame.readInt32BE(0));
    if (request === undefined) return;
    this.pending.delete(request.correlationId);
    for (const [unit, answer] of readProduceResponse(request.version, frame.subarray(4))) {
      this.listener.answered(unit, answer);
    }
    this.listener.changed();
  }
}

function isOneFrame(chunk: Buffer): boolean {
  return chunk.length >= 4 && chunk.length === 4 + chunk.readInt32BE(0);
}
