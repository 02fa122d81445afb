// Kafka from Maven Central, one broker that is its own controller (KRaft combined mode).
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { askKafka } from './ask.mjs';
import { download } from './download.mjs';
import { missing } from './missing.mjs';
import { findProgram, run } from './process.mjs';

const VERSION = '4.3.1';
const OLDEST_JAVA = 17;
const CLUSTER = 'b3V0Ym94LXRlc3RzLWthZg'; // 16 bytes, base64url

const POM = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>services</groupId><artifactId>kafka</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>${VERSION}</version></dependency>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId><version>${VERSION}</version></dependency>
    <dependency><groupId>org.apache.logging.log4j</groupId><artifactId>log4j-slf4j-impl</artifactId><version>2.25.4</version></dependency>
  </dependencies>
</project>
`;

const LOGGING = `rootLogger.level = info
rootLogger.appenderRef.stdout.ref = stdout
appender.stdout.type = Console
appender.stdout.name = stdout
appender.stdout.layout.type = PatternLayout
appender.stdout.layout.pattern = [%d] %p %m (%c)%n
`;

/**
 * server.properties of one node. Further brokers get another `node`, the same `voters`, and are no controllers.
 * In `settings`, {port} and {controllerPort} stand for the node's ports.
 * @param {{ node?: number, roles?: string, voters?: string, port: number, controllerPort: number, dataDir: string, settings?: Record<string, string> }} of
 */
export function serverProperties({ node = 1, roles = 'broker,controller', port, controllerPort, voters = `1@127.0.0.1:${controllerPort}`, dataDir, settings }) {
  const listeners = [
    ...(roles.includes('broker') ? [`PLAINTEXT://127.0.0.1:${port}`] : []),
    ...(roles.includes('controller') ? [`CONTROLLER://127.0.0.1:${controllerPort}`] : []),
  ];
  const all = {
    'process.roles': roles,
    'node.id': node,
    'controller.quorum.voters': voters,
    'controller.listener.names': 'CONTROLLER',
    listeners: listeners.join(','),
    'advertised.listeners': `PLAINTEXT://127.0.0.1:${port}`,
    'listener.security.protocol.map': 'PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT',
    'log.dirs': dataDir,
    'num.partitions': 3,
    'auto.create.topics.enable': true,
    'min.insync.replicas': 1,
    'default.replication.factor': 1,
    'offsets.topic.replication.factor': 1,
    'offsets.topic.num.partitions': 5,
    'transaction.state.log.replication.factor': 1,
    'transaction.state.log.min.isr': 1,
    'transaction.state.log.num.partitions': 5,
    'share.coordinator.state.topic.replication.factor': 1,
    'share.coordinator.state.topic.min.isr': 1,
    'group.initial.rebalance.delay.ms': 0,
    // A killed broker may register again only when its last session has run out: nine seconds by default.
    'broker.session.timeout.ms': 3_000,
    'broker.heartbeat.interval.ms': 1_000,
    ...settings,
  };
  return Object.entries(all)
    .map(([name, value]) => `${name}=${String(value).replace('{port}', String(port)).replace('{controllerPort}', String(controllerPort))}\n`)
    .join('');
}

/** @type {import('./native.mjs').Service} */
export const kafka = {
  name: 'kafka',
  variable: 'OUTBOX_KAFKA_BROKERS',
  scheme: '',
  user: '',
  database: '',
  defaultPort: 9092,
  runAs: [],
  stopSignal: 'SIGTERM',
  ready: askKafka,

  async prepare(say) {
    const java = await findJava();
    if (!java) throw missing(this, `no Java ${OLDEST_JAVA} or later was found in JAVA_HOME or PATH`);
    const fill = async (/** @type {string} */ folder) => {
      const mvn = findProgram('mvn');
      if (!mvn) throw missing(this, 'the program mvn (Maven), which downloads Kafka, was not found in PATH');
      writeFileSync(join(folder, 'pom.xml'), POM);
      writeFileSync(join(folder, 'log4j2.properties'), LOGGING);
      await run(mvn, [
        '--batch-mode', '--quiet', '--no-transfer-progress', '-f', join(folder, 'pom.xml'),
        'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies', `-DoutputDirectory=${join(folder, 'libs')}`,
      ]);
    };
    const folder = await download(`kafka-${VERSION}`, fill, say);
    return {
      command: java,
      args: ['-cp', join(folder, 'libs', '*'), `-Dlog4j2.configurationFile=${join(folder, 'log4j2.properties')}`],
      version: VERSION,
    };
  },

  async initialise(program, { dir, dataDir, port, controllerPort, join: membership, settings, run: runInPlace }) {
    const file = join(dir, 'server.properties');
    const role = membership && { ...membership, roles: 'broker' };
    writeFileSync(file, serverProperties({ ...role, port, controllerPort: /** @type {number} */ (controllerPort), dataDir, settings }));
    await runInPlace(program.command, [
      '-XX:TieredStopAtLevel=1', ...program.args, 'kafka.tools.StorageTool', 'format', '--cluster-id', CLUSTER, '--config', file,
    ]);
  },

  start(program, { dir, join: membership }) {
    const memory = membership ? ['-Xms64m', '-Xmx256m'] : ['-Xms256m', '-Xmx512m'];
    return { command: program.command, args: [...memory, ...program.args, 'kafka.Kafka', join(dir, 'server.properties')] };
  },
};

async function findJava() {
  const java = findProgram('java', process.env.JAVA_HOME ? [join(process.env.JAVA_HOME, 'bin')] : []);
  if (!java) return undefined;
  const version = await run(java, ['--version']).catch(() => '');
  return Number(/\b(\d+)(\.\d+)*/.exec(version)?.[1]) >= OLDEST_JAVA ? java : undefined;
}
