import type { KafkaClient } from '../kafka-topic';
import { withAdmin } from '../kafka-topic';
import { type Finding, fault, judge, type Opinion, type Subject, type Trouble, warning } from './finding';

/** The newest messages, whose topics are looked at beside those of what waits. */
const NEWEST = 10_000;
/** Kafka's number for a topic, where configurations are asked for. */
const TOPIC_RESOURCE = 2;
/** What a record has around the message: ids, times, headers of its own. */
const AROUND = 4096;

/** Topics of what was written last, and of what waits or was given up. */
export async function topicsOfLog({ sql, dialect: { tables } }: Subject): Promise<readonly string[]> {
  const rows = (await sql.query(
    `SELECT DISTINCT n.topic AS topic FROM (SELECT m.topic AS topic FROM ${tables.message} m ORDER BY m.id DESC LIMIT ${NEWEST}) n
     UNION SELECT DISTINCT h.topic FROM ${tables.hold} h UNION SELECT DISTINCT d.topic FROM ${tables.dead} d`,
  )) as { topic: string }[];
  return rows.map(({ topic }) => topic);
}

interface Topic {
  readonly name: string;
  /** The least of its partitions. */
  readonly replicas: number;
  readonly inSync: number;
  readonly config: ReadonlyMap<string, string>;
}

interface Cluster {
  readonly missing: readonly string[];
  readonly topics: readonly Topic[];
}

/** What there is to say of the brokers and of the topics that messages go to. */
export async function examineTopics(kafka: KafkaClient, wanted: readonly string[], maxMessageBytes: number): Promise<readonly Finding[]> {
  let cluster: Cluster;
  try {
    cluster = await readCluster(kafka, wanted);
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    return [{ check: 'brokers.reachable', ...fault(`the brokers do not answer, or not to this client: ${said}`, 'Look at addresses, listeners and rights. Until then events wait; nothing is lost.') }];
  }
  const { missing, topics } = cluster;
  const none = wanted.length === 0 ? 'no topic is known: name some with --topics' : topics.map(({ name }) => name).join(', ');
  const opinions: readonly (readonly [Finding['check'], Opinion])[] = [
    ['brokers.reachable', judge('they answer', [])],
    ['topics.present', judge(none, missing.map((name) => fault(`there is no topic ${name}`, 'Create it; its messages wait until then, and go on by themselves.')))],
    ['topics.replicas', judge(none, topics.flatMap(replicaTroubles))],
    ['topics.size', judge(none, topics.flatMap((topic) => sizeTroubles(topic, maxMessageBytes)))],
  ];
  return opinions.map(([check, opinion]) => ({ check, ...opinion }));
}

function replicaTroubles({ name, replicas, inSync, config }: Topic): readonly Trouble[] {
  const least = Number(config.get('min.insync.replicas') ?? 1);
  const troubles: Trouble[] = [];
  const set = 'Three replicas and min.insync.replicas=2: one broker may fail, and nothing that was acknowledged is lost.';
  if (least > replicas) troubles.push(fault(`${name} takes nothing: min.insync.replicas=${least}, and it has ${replicas} replicas`, set));
  else if (inSync < least) troubles.push(fault(`${name} takes nothing now: min.insync.replicas=${least}, and ${inSync} are in sync`, 'Bring its brokers back.'));
  else if (replicas === 1) troubles.push(warning(`${name} has one replica: what its broker loses is lost`, set));
  else if (least === 1) troubles.push(warning(`${name} has min.insync.replicas=1: what one broker alone has acknowledged can be lost with it`, set));
  else if (least === replicas) troubles.push(warning(`${name} takes nothing while any of its ${replicas} replicas is away`, set));
  if (config.get('unclean.leader.election.enable') === 'true') troubles.push(warning(`${name} may elect a leader that lacks acknowledged records`, 'Set unclean.leader.election.enable=false.'));
  return troubles;
}

function sizeTroubles({ name, config }: Topic, maxMessageBytes: number): readonly Trouble[] {
  const size = Number(config.get('max.message.bytes'));
  if (!(size < maxMessageBytes + AROUND)) return [];
  return [fault(`${name} takes ${size} bytes, and the outbox takes messages of ${maxMessageBytes}`, 'Raise max.message.bytes of the topic (message.max.bytes of the brokers), or lower maxMessageBytes: larger ones are refused, and end as dead.')];
}

function readCluster(kafka: KafkaClient, wanted: readonly string[]): Promise<Cluster> {
  return withAdmin(kafka, async (admin) => {
    // Asking for a topic that is not there may create it.
    const there = new Set(await admin.listTopics());
    const names = wanted.filter((name) => there.has(name));
    const missing = wanted.filter((name) => !there.has(name));
    if (names.length === 0) return { missing, topics: [] };
    const { topics: metadata } = await admin.fetchTopicMetadata({ topics: names });
    const { resources } = await admin.describeConfigs({ resources: names.map((name) => ({ type: TOPIC_RESOURCE, name })), includeSynonyms: false });
    const configs = new Map(resources.map(({ resourceName, configEntries }) => [resourceName, new Map(configEntries.map(({ configName, configValue }) => [configName, configValue]))]));
    const least = (counts: readonly number[]): number => Math.min(...counts);
    const topics = metadata.map(({ name, partitions }) => ({
      name,
      replicas: least(partitions.map(({ replicas }) => replicas.length)),
      inSync: least(partitions.map(({ isr }) => isr.length)),
      config: configs.get(name) ?? new Map<string, string>(),
    }));
    return { missing, topics };
  });
}
