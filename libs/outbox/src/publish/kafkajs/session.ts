import { Kafka, type KafkaConfig, logLevel, type Producer, type RecordMetadata } from 'kafkajs';
import type { Deadline } from '../deadline';
import type { PublishFailure, PublishRecord } from '../publisher';
import {
  answered,
  type PartitionAnswer,
  type Place,
  placesOf,
  type Sent,
  type Session,
  settle,
  turned,
  unitOf,
} from '../kafka/session';
import type { ClientLog } from './client-log';
import { explain } from './explain';
import { groupByTopic, toMessage } from './messages';
import type { ResolvedKafkaOptions } from './options';
import { Partitions } from './partitions';
import { ProduceTap } from './produce-tap';
import { ProducerSockets } from './producer-sockets';

/** Tries of the client while it looks for a broker; each is short, and the deadline of a publish bounds them all. */
const CLUSTER_RETRY = { initialRetryTime: 50, maxRetryTime: 500, retries: 4 };
/** The least that kafkajs takes for an idempotent producer, and what makes one worthwhile. */
const IDEMPOTENT_RETRY = { initialRetryTime: 50, maxRetryTime: 500, retries: 2 };

/** Errors after which kafkajs forgets the topic that it was asked for. */
const FORGOTTEN_TOPIC_ERRORS = new Set([
  'UNKNOWN_TOPIC_OR_PARTITION',
  'INVALID_TOPIC_EXCEPTION',
  'TOPIC_AUTHORIZATION_FAILED',
]);

/** One producer of kafkajs, from its connection until it is stopped for good. */
export class KafkaJsSession implements Session {
  private readonly producer: Producer;
  private readonly tap = new ProduceTap();
  private readonly sockets: ProducerSockets;
  private readonly partitions: Partitions;
  private readonly known = new Set<string>();
  private ended = false;

  constructor(
    private readonly options: ResolvedKafkaOptions,
    log: ClientLog,
    firstBroker: number,
  ) {
    const { client, producer, idempotent } = options;
    this.sockets = new ProducerSockets(this.tap, client.socketFactory);
    this.partitions = new Partitions(producer.createPartitioner);
    const kafka = new Kafka({
      logLevel: logLevel.WARN,
      logCreator: log.creator(() => this.ended),
      ...client,
      brokers: beginningAt(firstBroker, client.brokers),
      retry: CLUSTER_RETRY,
      socketFactory: this.sockets.factory,
    });
    this.producer = kafka.producer({
      ...(producer.metadataMaxAge === undefined ? {} : { metadataMaxAge: producer.metadataMaxAge }),
      ...(producer.maxInFlightRequests === undefined ? {} : { maxInFlightRequests: producer.maxInFlightRequests }),
      allowAutoTopicCreation: producer.allowAutoTopicCreation ?? false,
      createPartitioner: this.partitions.createPartitioner,
      idempotent,
      // Not even one retry without idempotence: it would store again what the failed try had stored.
      retry: idempotent ? IDEMPOTENT_RETRY : { retries: 0 },
    });
  }

  get stopped(): boolean {
    return this.ended;
  }

  async connect(deadline: Deadline): Promise<void> {
    const connecting = settle(this.producer.connect());
    const settled = await deadline.race(connecting);
    if (settled?.value.failed === false) return;
    this.stop();
    if (settled !== null) throw settled.value.error;
    throw Object.assign(new Error('no broker answered in time'), { code: 'TIMEOUT' });
  }

  async send(records: readonly PublishRecord[], deadline: Deadline): Promise<Sent> {
    this.tap.begin();
    this.partitions.begin();
    const messages = records.map(toMessage);
    const sending = settle(
      this.producer.sendBatch({
        acks: -1,
        // The broker gives up a little earlier than we do, so that its answer still arrives.
        timeout: Math.max(1, Math.floor(deadline.remaining * 0.9)),
        ...(this.options.compression === undefined ? {} : { compression: this.options.compression }),
        topicMessages: groupByTopic(records, messages),
      }),
    );
    const settled = await deadline.race(sending);
    const failure = settled?.value.failed ? explain(settled.value.error) : null;
    const places = placesOf(records, (position) => {
      const message = messages[position];
      return message === undefined ? undefined : this.partitions.of(message);
    });
    if (settled?.value.failed === false) {
      for (const { topic } of records) this.known.add(topic);
      const named = answersOf(settled.value.value ?? []);
      return { records: answered(places, (unit) => named.get(unit)), failure, late: false, written: true };
    }
    if (settled === null) this.stop();
    else if (!this.isUntouched(records, places, failure)) await this.endFailedSend(places, deadline);
    const sent = answered(places, (unit) => this.tap.answerOf(unit));
    return { records: sent, failure, late: settled === null, written: this.tap.anythingWritten };
  }

  async close(deadline: Deadline): Promise<void> {
    if (!this.ended) await deadline.race(settle(this.producer.disconnect()));
    this.stop();
  }

  private stop(): void {
    if (this.ended) return;
    this.ended = true;
    this.sockets.stop();
    // Its timers and its cached metadata go as well; it has no socket left to wait for.
    void settle(this.producer.disconnect());
  }

  /**
   * After an error requests to other brokers may still be on their way: their answers are waited for. A request that
   * is not even written when they have come is prevented.
   */
  private async endFailedSend(places: readonly (Place | null)[], deadline: Deadline): Promise<void> {
    await deadline.race(this.tap.quiet());
    // kafkajs counts a failed batch of an idempotent producer as not sent, though parts may be stored: its sequence
    // numbers are wrong from then on, and the broker would drop new records as repeats.
    const all = places.every((place) => place !== null && this.tap.answerOf(place.unit) !== undefined);
    if (!all || this.options.idempotent) this.stop();
  }

  /**
   * Whether the client is as it was before the batch. It is when it failed while it looked a new topic up, with an
   * error after which it takes the topic off its list; others it would ask for again with each later batch.
   */
  private isUntouched(records: readonly PublishRecord[], places: readonly (Place | null)[], failure: PublishFailure | null): boolean {
    return (
      failure !== null &&
      FORGOTTEN_TOPIC_ERRORS.has(failure.code) &&
      places.every((place) => place === null) &&
      records.every(({ topic }) => !this.known.has(topic))
    );
  }
}

/** kafkajs asks the brokers in the order in which they are given, each new client from the start. */
function beginningAt(first: number, brokers: KafkaConfig['brokers']): KafkaConfig['brokers'] {
  if (typeof brokers === 'function') return async () => turned(await brokers(), first);
  return Array.isArray(brokers) ? turned(brokers, first) : brokers; // kafkajs says what is wrong with it
}

function answersOf(metadata: readonly RecordMetadata[]): Map<string, PartitionAnswer> {
  return new Map(
    metadata.map(({ topicName, partition, errorCode, baseOffset }) => {
      const offset = baseOffset === undefined ? -1n : BigInt(baseOffset);
      return [unitOf(topicName, partition), { errorCode, baseOffset: offset < 0n ? null : offset }] as const;
    }),
  );
}
