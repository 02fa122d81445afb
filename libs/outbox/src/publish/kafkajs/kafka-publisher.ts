import { Logger } from '@nestjs/common';
import { TopicRefusedError } from '../../errors';
import { publishBisecting, type TryOutcome } from '../bisect';
import { refusalOf } from '../check';
import { splitByBytes } from '../chunks';
import { Deadline } from '../deadline';
import { unknown } from '../outcome';
import type { PublishOptions, PublishOutcome, Publisher, PublisherFactory, PublishRecord } from '../publisher';
import { ClientLog } from './client-log';
import { quietIdleQueues } from './idle-queue';
import { type KafkaPublisherOptions, resolveKafkaOptions, type ResolvedKafkaOptions } from './options';
import { TopicCreation } from './topic-creation';
import { TopicWiseSender } from './topic-wise-sender';

/** Milliseconds that `connect` waits for a broker. */
const CONNECT_TIMEOUT = 5_000;
/** Milliseconds that `close` waits for a running publish, and then for the goodbyes to the brokers. */
const CLOSE_GRACE = 1_000;

/**
 * Publishes through kafkajs, each relay worker with a producer of its own.
 *
 * @example
 * OutboxModule.forRoot({ publisher: kafkaPublisher({ clientId: 'orders', brokers: ['kafka:9092'] }) })
 */
export function kafkaPublisher(options: KafkaPublisherOptions): PublisherFactory {
  const resolved = resolveKafkaOptions(options);
  quietIdleQueues();
  const logger = new Logger('KafkaPublisher');
  const log = new ClientLog(logger);
  const topics = new TopicCreation(resolved, logger);
  return Object.assign(() => new KafkaPublisher(resolved, log, topics), {
    prepare: () => call(CONNECT_TIMEOUT, (deadline) => ensureWithin(deadline, topics)).result,
  });
}

class KafkaPublisher implements Publisher {
  private readonly sender: TopicWiseSender;
  private connecting: Call<void> | null = null;
  private publishing: Call<readonly PublishOutcome[]> | null = null;
  private closed = false;

  constructor(
    private readonly options: ResolvedKafkaOptions,
    log: ClientLog,
    private readonly topics: TopicCreation,
  ) {
    this.sender = new TopicWiseSender(options, log);
  }

  async connect(): Promise<void> {
    if (this.closed) throw new Error('The publisher is closed');
    if (this.publishing !== null) return;
    this.connecting ??= call(CONNECT_TIMEOUT, async (deadline) => {
      // What was refused has been said, and its messages wait; a broker that is away is asked again.
      await ensureWithin(deadline, this.topics).catch((error: unknown) => {
        if (!(error instanceof TopicRefusedError)) throw error;
      });
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
      chunks: splitByBytes(records, this.options.maxRequestBytes),
      expired: () => deadline.expired,
    });
  }
}

async function ensureWithin(deadline: Deadline, topics: TopicCreation): Promise<void> {
  if ((await deadline.race(topics.ensure())) === null) throw new Error('Kafka did not answer in time when asked for topics');
}

/** Work that is under way, and the time that it has. */
interface Call<T> {
  readonly deadline: Deadline;
  readonly result: Promise<T>;
  /** Never rejects. */
  readonly settled: Promise<unknown>;
}

function call<T>(timeout: number, work: (deadline: Deadline) => Promise<T>): Call<T> {
  const deadline = new Deadline(timeout);
  const result = work(deadline).finally(() => deadline.dispose());
  return { deadline, result, settled: result.catch(() => undefined) };
}
