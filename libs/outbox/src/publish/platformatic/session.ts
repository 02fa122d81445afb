import { setTimeout as sleep } from 'node:timers/promises';
import type { Broker, ClusterMetadata, Producer } from '@platformatic/kafka' with { 'resolution-mode': 'import' };
import { Deadline } from '../deadline';
import type { QuietLog } from '../kafka/quiet-log';
import { answered, type PartitionAnswer, type Place, placesOf, type Sent, type Session, settle, turned } from '../kafka/session';
import type { PublishRecord } from '../publisher';
import { ClientSockets } from './client-sockets';
import { answersOf, answersWithin, explain } from './explain';
import type { ResolvedPlatformaticOptions } from './options';
import { useReadableAnswers } from './produce-version';
import { PartitionChoice, toClientMessage } from './records';

/** Milliseconds by which metadata are asked for earlier than the client would do it by itself. */
const METADATA_MARGIN = 60_000;
/** Milliseconds that a send may take to fail when its connections are gone. */
const STOP_GRACE = 200;
const LOADING_PAUSE = 50;
const ALL_REPLICAS = -1;

/** What may be wrong with a topic while the road to the brokers is sound. */
const TOPIC_ERRORS = new Set([
  'UNKNOWN_TOPIC_OR_PARTITION',
  'LEADER_NOT_AVAILABLE',
  'INVALID_TOPIC_EXCEPTION',
  'TOPIC_AUTHORIZATION_FAILED',
]);

/** One producer of @platformatic/kafka, from its connection until it is stopped for good. */
export class PlatformaticSession implements Session {
  private producer: Producer | null = null;
  private sockets: ClientSockets | null = null;
  private readonly partitions = new PartitionChoice();
  private ended = false;

  constructor(
    private readonly options: ResolvedPlatformaticOptions,
    private readonly log: QuietLog,
    private readonly firstBroker: number,
  ) {}

  get stopped(): boolean {
    return this.ended;
  }

  async connect(deadline: Deadline): Promise<void> {
    const settled = await deadline.race(settle(this.open()));
    if (settled?.value.failed === false) return;
    this.stop();
    if (settled !== null) throw settled.value.error;
    throw Object.assign(new Error('no broker answered in time'), { code: 'TIMEOUT' });
  }

  async send(records: readonly PublishRecord[], deadline: Deadline): Promise<Sent> {
    const { producer } = this;
    if (producer === null) throw new Error('the session is not connected');
    const placing = await deadline.race(settle(this.place(producer, records)));
    if (placing === null) {
      this.stop();
      return { ...notWritten(records), late: true };
    }
    if (placing.value.failed) {
      const failure = explain(placing.value.error);
      if (!TOPIC_ERRORS.has(failure.code)) this.stop();
      return { ...notWritten(records), failure };
    }
    const places = placing.value.value;
    const sending = settle(this.produce(producer, records, places));
    const inTime = await deadline.race(sending);
    // Once stopped it fails at once, and then tells what other brokers have stored.
    const result = (inTime ?? (await this.stopSending(sending)))?.value;
    const sent = { failure: null, late: inTime === null, written: true };
    if (result?.failed) {
      const answers = answersWithin(result.error);
      this.afterFailure(producer, places, answers);
      return { ...sent, records: answered(places, (unit) => answers.get(unit)), failure: explain(result.error) };
    }
    const answers = answersOf(result?.value.offsets ?? []);
    return { ...sent, records: answered(places, (unit) => answers.get(unit)) };
  }

  async close(deadline: Deadline): Promise<void> {
    if (!this.ended && this.producer !== null) await deadline.race(settle(this.producer.close()));
    this.stop();
  }

  private async open(): Promise<void> {
    // The client is an ES module, and loaded only where it is used.
    const kafka = await import('@platformatic/kafka');
    if (this.ended) throw new Error('the session was stopped');
    const { client, idempotent, metadataMaxAge } = this.options;
    const producer: Producer = new kafka.Producer({
      ...(client as { clientId: string }),
      bootstrapBrokers: turned<string | Broker>(client.bootstrapBrokers, this.firstBroker) as string[],
      metadataMaxAge: metadataMaxAge + METADATA_MARGIN,
      idempotent,
      autocreateTopics: false,
      // Not `0`: an idempotent producer would turn that into retries without end.
      retries: false,
      repeatOnStaleMetadata: false,
    });
    useReadableAnswers(kafka, producer);
    this.producer = producer;
    this.sockets = new ClientSockets(producer, () => producer.close(true, () => {}));
    producer.connections.on('failed', ({ broker }: { broker: { host: string; port: number } }) => {
      if (!this.ended) this.log.warn(`No connection to the broker ${broker.host}:${broker.port}`);
    });
    await producer.metadata({ topics: [] });
    if (idempotent) await this.initialise(producer);
  }

  /** A broker that has just started has no numbers for idempotent producers yet, for some milliseconds. */
  private async initialise(producer: Producer): Promise<void> {
    for (;;) {
      const result = await settle(producer.initIdempotentProducer({}));
      if (!result.failed) return;
      if (this.ended || explain(result.error).code !== 'COORDINATOR_LOAD_IN_PROGRESS') throw result.error;
      await sleep(LOADING_PAUSE);
    }
  }

  /**
   * Chooses the partitions. That each has a leader that is known is made sure of here: the client would end the process
   * with an uncaught TypeError. It sends in the same turn, by the same metadata.
   */
  private async place(producer: Producer, records: readonly PublishRecord[]): Promise<Place[]> {
    const topics = [...new Set(records.map(({ topic }) => topic))];
    const metadata = await producer.metadata({ topics, metadataMaxAge: this.options.metadataMaxAge });
    const chosen = records.map((record) => {
      const count = metadata.topics.get(record.topic)?.partitionsCount ?? 0;
      if (count === 0) throw failure('INVALID_TOPIC_EXCEPTION', `${record.topic} is a topic of the brokers' own`);
      return this.partitions.of(record, count);
    });
    records.forEach(({ topic }, position) => {
      const partition = chosen[position] ?? 0;
      if (hasLeader(metadata, topic, partition)) return;
      producer.clearMetadata();
      throw failure('LEADER_NOT_AVAILABLE', `no broker leads partition ${partition} of ${topic}`);
    });
    return placesOf(records, (position) => chosen[position]).filter((place) => place !== null);
  }

  private async produce(producer: Producer, records: readonly PublishRecord[], places: readonly Place[]) {
    return producer.send({
      messages: records.map((record, position) => toClientMessage(record, places[position]?.partition ?? 0)),
      acks: ALL_REPLICAS,
      compression: this.options.compression,
    });
  }

  private afterFailure(producer: Producer, places: readonly Place[], answers: ReadonlyMap<string, PartitionAnswer>): void {
    // Sequence numbers of an idempotent producer do not count what was stored beside a failure: the broker would drop
    // new records as repeats. And what was not answered may still be on its way.
    const all = places.every(({ unit }) => answers.has(unit));
    if (!all || this.options.idempotent) this.stop();
    else producer.clearMetadata();
  }

  private async stopSending<T>(sending: Promise<T>): Promise<{ readonly value: T } | null> {
    this.stop();
    const grace = new Deadline(STOP_GRACE);
    const stopped = await grace.race(sending);
    grace.dispose();
    return stopped;
  }

  private stop(): void {
    if (this.ended) return;
    this.ended = true;
    this.sockets?.stop();
  }
}

function notWritten(records: readonly PublishRecord[]): Sent {
  return { records: answered(records.map(() => null), () => undefined), failure: null, late: false, written: false };
}

function hasLeader({ topics, brokers }: ClusterMetadata, topic: string, partition: number): boolean {
  const leader = topics.get(topic)?.partitions[partition]?.leader;
  return leader !== undefined && brokers.has(leader);
}

function failure(apiId: string, message: string): Error {
  return Object.assign(new Error(message), { apiId });
}
