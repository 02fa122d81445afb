import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { kafkaJava, type OwnCluster, startOwnCluster } from '../services/index.mjs';

const run = promisify(execFile);
const PASSWORD = 'changeit';

export interface SecureKafka {
  /** Who asks here needs TLS, and a name and password. */
  readonly secure: string;
  /** Who asks here needs neither. */
  readonly open: string;
  /** The certificate that the broker shows, which nobody else vouches for. */
  readonly certificate: string;
  readonly username: string;
  readonly password: string;
  remove(): Promise<void>;
}

/** A broker that also listens with TLS and SASL/PLAIN, and that ends connections on which nothing is said. */
export async function startSecureKafka({ idle }: { readonly idle: number }): Promise<SecureKafka> {
  const folder = await mkdtemp(join(tmpdir(), 'secure-kafka-'));
  const store = join(folder, 'broker.p12');
  const keytool = join(dirname((await kafkaJava()).command), 'keytool');
  const common = ['-alias', 'broker', '-keystore', store, '-storetype', 'PKCS12', '-storepass', PASSWORD];
  await run(keytool, ['-genkeypair', ...common, '-keyalg', 'EC', '-dname', 'CN=localhost', '-ext', 'san=ip:127.0.0.1,dns:localhost', '-validity', '2']);
  await run(keytool, ['-exportcert', '-rfc', ...common, '-file', join(folder, 'broker.pem')]);
  const [username, password] = ['outbox', 'only for this test'];
  const port = await freePort();
  const listeners = `PLAINTEXT://127.0.0.1:{port},SASL_SSL://127.0.0.1:${port}`;
  let cluster: OwnCluster;
  try {
    cluster = await startOwnCluster({
      brokers: 0,
      settings: {
        listeners: `${listeners},CONTROLLER://127.0.0.1:{controllerPort}`,
        'advertised.listeners': listeners,
        'listener.security.protocol.map': 'PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL',
        'sasl.enabled.mechanisms': 'PLAIN',
        'listener.name.sasl_ssl.plain.sasl.jaas.config': `org.apache.kafka.common.security.plain.PlainLoginModule required user_${username}="${password}";`,
        'ssl.keystore.location': store,
        'ssl.keystore.type': 'PKCS12',
        'ssl.keystore.password': PASSWORD,
        'ssl.key.password': PASSWORD,
        'connections.max.idle.ms': String(idle),
      },
    });
  } catch (error) {
    await rm(folder, { recursive: true });
    throw error;
  }
  return {
    secure: `127.0.0.1:${port}`,
    open: cluster.addresses[0] ?? '',
    certificate: await readFile(join(folder, 'broker.pem'), 'utf8'),
    username,
    password,
    async remove() {
      await cluster.remove();
      await rm(folder, { recursive: true });
    },
  };
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => (typeof address === 'object' && address !== null ? resolve(address.port) : reject(new Error('no port'))));
    });
  });
}
