import { publishBisecting, type TryOutcome } from '../bisect';
import { refusalOf } from '../check';
import { splitByBytes } from '../chunks';
import { Deadline } from '../deadline';
import { unknown } from '../outcome';
import type { PublishOptions, PublishOutcome, Publisher, PublishRecord } from '../publisher';
import { type Call, call } from './call';
import type { QuietLog } from './quiet-log';
import type { KafkaClient } from './session';
import { TopicWiseSender } from './topic-wise-sender';

/** Milliseconds that `connect` waits for a broker. */
export const CONNECT_TIMEOUT = 5_000;
/** Milliseconds that `close` waits for a running publish, and then for the goodbyes to the brokers. */
const CLOSE_GRACE = 1_000;

/** Publishes through a client of Kafka: what all of them share. */
export class KafkaPublisher implements Publisher {
  private readonly sender: TopicWiseSender;
  private connecting: Call<void> | null = null;
  private publishing: Call<readonly PublishOutcome[]> | null = null;
  private closed = false;

  constructor(
    private readonly client: KafkaClient,
    private readonly maxRequestBytes: number,
    log: QuietLog,
  ) {
    this.sender = new TopicWiseSender(client, log);
  }

  async connect(): Promise<void> {
    if (this.closed) throw new Error('The publisher is closed');
    if (this.publishing !== null) return;
    this.connecting ??= call(CONNECT_TIMEOUT, async (deadline) => {
      await this.client.prepare?.(deadline);
      await this.sender.connect(deadline);
    });
    await this.connecting.result.finally(() => (this.connecting = null));
  }

  async publish(records: readonly PublishRecord[], options: PublishOptions): Promise<readonly PublishOutcome[]> {
    if (this.publishing !== null) throw new Error('publish was called while another publish was running');
    this.publishing = call(options.timeout, async (deadline) => {
      if (this.connecting !== null) await deadline.race(this.connecting.settled);
      return this.deliver(records, deadline);
    });
    return this.publishing.result.finally(() => (this.publishing = null));
  }

  async close(): Promise<void> {
    this.closed = true;
    const grace = new Deadline(CLOSE_GRACE);
    for (const running of [this.connecting, this.publishing]) {
      if (running === null) continue;
      await grace.race(running.settled);
      running.deadline.cut();
      await running.settled;
    }
    await this.sender.close(grace);
    grace.dispose();
  }

  private deliver(records: readonly PublishRecord[], deadline: Deadline): Promise<PublishOutcome[]> {
    const trySend = async (batch: readonly PublishRecord[]): Promise<readonly TryOutcome[]> => {
      if (this.closed) return batch.map(() => unknown('CLOSED', 'the publisher is closed'));
      const refusals = batch.map(refusalOf);
      const sound = batch.filter((_, index) => refusals[index] === null);
      const sent = sound.length === 0 ? [] : await this.sender.send(sound, deadline);
      let next = 0;
      return refusals.map((refusal) => refusal ?? sent[next++] ?? unknown('NOT_SENT', 'the record was never tried'));
    };
    return publishBisecting(records, trySend, {
      chunks: splitByBytes(records, this.maxRequestBytes),
      expired: () => deadline.expired,
    });
  }
}
