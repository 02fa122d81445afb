import { refusalOf } from '../check';
import { estimateBytes } from '../chunks';
import { acknowledged, behind, orderOf, refused, unknown } from '../outcome';
import type { PublishOutcome, Publisher, PublishRecord } from '../publisher';
import type { Faults, InMemoryFault } from './faults';
import type { TopicLog } from './topic-log';

export interface InMemoryPublisherDeps {
  readonly log: TopicLog;
  readonly faults: Faults;
  readonly stored: () => void;
}

export class InMemoryPublisher implements Publisher {
  private closed = false;
  private busy = false;

  constructor(private readonly deps: InMemoryPublisherDeps) {}

  async connect(): Promise<void> {
    if (this.deps.faults.outage) throw new Error('The in-memory broker is down');
  }

  async publish(records: readonly PublishRecord[]): Promise<readonly PublishOutcome[]> {
    if (this.busy) throw new Error('publish was called while another publish was running');
    this.busy = true;
    try {
      // A broker never answers within the same turn; code that relies on it would break on a real one.
      await new Promise((resolve) => setImmediate(resolve));
      return this.store(records);
    } finally {
      this.busy = false;
    }
  }

  async close(): Promise<void> {
    this.closed = true;
  }

  private store(records: readonly PublishRecord[]): PublishOutcome[] {
    const rule = this.deps.faults.forBatch();
    const failed = new Map<string, 'refused' | 'unknown'>();
    const outcomes = records.map((record) => {
      const order = orderOf(record);
      const earlier = order === null ? undefined : failed.get(order);
      const outcome = earlier === undefined ? this.storeOne(record, rule) : behind(earlier);
      if (order !== null && outcome.status !== 'acknowledged' && !failed.has(order)) failed.set(order, outcome.status);
      return outcome;
    });
    this.deps.stored();
    return outcomes;
  }

  private storeOne(record: PublishRecord, rule: InMemoryFault): PublishOutcome {
    if (this.closed) return unknown('CLOSED', 'the publisher is closed');
    const effect = rule(record);
    if (effect === 'lost') return unknown('BROKER_UNREACHABLE', 'the in-memory broker did not answer');
    const refusal = refusalOf(record);
    if (refusal !== null) return refusal;
    if (effect === 'refused') return refused('FAULT', 'refused by a fault that was asked for');
    const limit = this.deps.log.maxRecordBytes(record.topic);
    if (estimateBytes(record) > limit) {
      return refused('MESSAGE_TOO_LARGE', `the record takes more than ${limit} bytes`);
    }
    const { topic, key, value, headers, timestamp } = record;
    const stored = this.deps.log.append(topic, { key, value, headers, timestamp });
    return effect === 'answer-lost'
      ? unknown('ANSWER_LOST', 'the record was stored, the answer was lost')
      : acknowledged(stored.partition, String(stored.offset));
  }
}
