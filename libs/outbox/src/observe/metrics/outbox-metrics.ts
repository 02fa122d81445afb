import type { Instrument, Labels } from './instruments';

/** One value at the moment of asking. */
export interface Reading {
  readonly instrument: Instrument;
  readonly labels: Labels;
  readonly value: number;
}

/** Where the figures of the outbox go: `prometheusMetrics({ … })` or `openTelemetryMetrics()`. */
export interface OutboxMetrics {
  /** Adds to a counter, or a value to a histogram. */
  record(instrument: Instrument, labels: Labels, value: number): void;
  /**
   * Has `read` called whenever somebody asks for the figures. It never rejects.
   *
   * @returns what ends it
   */
  observe(read: () => Promise<readonly Reading[]>): () => void;
}
