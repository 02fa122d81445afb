// The smallest conversations that prove that a server answers, written by hand so that no client need be installed.
import { connect } from 'node:net';

/** @typedef {{ host: string, port: number }} Address */

const PATIENCE_MS = 2_000;

/**
 * Connects, and hands `talk` a way to send and to await the first answer for which `parse` returns something.
 * @template T
 * @param {Address} address
 * @param {(line: { send: (bytes: Buffer) => void, answer: <A>(parse: (bytes: Buffer) => { value: A, used: number } | undefined) => Promise<A> }) => Promise<T>} talk
 * @returns {Promise<T>}
 */
async function converse({ host, port }, talk) {
  const socket = connect({ host, port });
  let received = Buffer.alloc(0);
  let wake = () => {};
  /** @type {Error | undefined} */
  let broken;
  socket.setTimeout(PATIENCE_MS, () => socket.destroy(new Error(`no answer within ${PATIENCE_MS} ms`)));
  socket.on('data', (chunk) => { received = Buffer.concat([received, chunk]); wake(); });
  socket.on('error', (error) => { broken = error; wake(); });
  socket.on('close', () => { broken ??= new Error('connection closed'); wake(); });
  try {
    return await talk({
      send: (bytes) => { socket.write(bytes); },
      async answer(parse) {
        for (;;) {
          const parsed = parse(received);
          if (parsed) {
            received = received.subarray(parsed.used);
            return parsed.value;
          }
          if (broken) throw broken;
          await new Promise((done) => { wake = () => done(undefined); });
        }
      },
    });
  } finally {
    socket.destroy();
  }
}

/** Only that something accepts connections. @param {Address} address @returns {Promise<void>} */
export function askTcp({ host, port }) {
  return new Promise((done, fail) => {
    const socket = connect({ host, port });
    socket.setTimeout(PATIENCE_MS, () => socket.destroy(new Error('timed out')));
    socket.once('connect', () => { socket.destroy(); done(); });
    socket.once('error', fail);
  });
}

/** PING, then the version. @param {Address} address */
export function askRedis(address) {
  return converse(address, async ({ send, answer }) => {
    send(Buffer.from('PING\r\nINFO server\r\n'));
    const text = await answer((bytes) => {
      const found = bytes.toString();
      return /^-|^\+PONG\r\n(-|[^]*redis_version:[^\r]*\r)/.test(found) ? { value: found, used: bytes.length } : undefined;
    });
    if (!text.startsWith('+PONG')) throw new Error(`PING was answered with ${text.split('\r')[0]}`);
    return /redis_version:([^\r]*)/.exec(text)?.[1] ?? '';
  });
}

/** Logs in without a password and sends a query. @param {Address & { user: string }} address */
export function askMysql({ user, ...address }) {
  return converse(address, async ({ send, answer }) => {
    let sequence = 0;
    const next = () => answer((bytes) => {
      if (bytes.length < 4 || bytes.length < 4 + bytes.readUIntLE(0, 3)) return undefined;
      const used = 4 + bytes.readUIntLE(0, 3);
      sequence = bytes[3] + 1;
      const value = bytes.subarray(4, used);
      if (value[0] === 0xff) throw new Error(`error ${value.readUInt16LE(1)}: ${value.subarray(3).toString()}`);
      return { value, used };
    });
    const say = (/** @type {Buffer} */ payload) => {
      const head = Buffer.alloc(4);
      head.writeUIntLE(payload.length, 0, 3);
      head[3] = sequence;
      send(Buffer.concat([head, payload]));
    };
    const greeting = await next();
    const version = greeting.subarray(1, greeting.indexOf(0, 1)).toString();
    const plugin = greeting.subarray(greeting.lastIndexOf(0, greeting.length - 2) + 1); // zero-terminated
    const head = Buffer.alloc(32);
    head.writeUInt32LE(0x0008_a201); // PLUGIN_AUTH, SECURE_CONNECTION, TRANSACTIONS, PROTOCOL_41, LONG_PASSWORD
    head.writeUInt32LE(0x0100_0000, 4);
    head[8] = 45; // utf8mb4
    say(Buffer.concat([head, Buffer.from(`${user}\0\0`), plugin]));
    if ((await next())[0] === 0xfe) {
      say(Buffer.alloc(0));
      await next();
    }
    sequence = 0;
    say(Buffer.from('\x03SELECT 1'));
    await next();
    return version.replace(/^5\.5\.5-/, '').replace(/-.*$/, '');
  });
}

/** Logs in without a password and sends a query. @param {Address & { user: string, database: string }} address */
export function askPostgres({ user, database, ...address }) {
  return converse(address, async ({ send, answer }) => {
    let version = '';
    const untilReady = async () => {
      for (let kind = ''; kind !== 'Z';) {
        kind = await answer((bytes) => {
          if (bytes.length < 5 || bytes.length < 1 + bytes.readUInt32BE(1)) return undefined;
          const used = 1 + bytes.readUInt32BE(1);
          const text = bytes.subarray(5, used).toString();
          const type = String.fromCharCode(bytes[0]);
          if (type === 'E') throw new Error(text.replaceAll('\0', ' ').trim());
          if (type === 'R' && bytes.readUInt32BE(5) !== 0) throw new Error('a password is asked for');
          if (type === 'S' && text.startsWith('server_version\0')) version = text.split('\0')[1].split(' ')[0];
          return { value: type, used };
        });
      }
    };
    const say = (/** @type {Buffer} */ payload, kind = '') => {
      const length = Buffer.alloc(4);
      length.writeUInt32BE(payload.length + 4);
      send(Buffer.concat([Buffer.from(kind), length, payload]));
    };
    say(Buffer.concat([Buffer.from([0, 3, 0, 0]), Buffer.from(`user\0${user}\0database\0${database}\0\0`)]));
    await untilReady();
    say(Buffer.from('SELECT 1\0'), 'Q');
    await untilReady();
    return version;
  });
}

/** ApiVersions, then Metadata: a broker that answers but knows no broker yet would fail the first client. @param {Address} address */
export function askKafka(address) {
  return converse(address, async ({ send, answer }) => {
    const request = async (/** @type {number} */ api, /** @type {number} */ version, /** @type {Buffer} */ body) => {
      const head = Buffer.alloc(14);
      head.writeUInt32BE(10 + body.length, 0);
      head.writeInt16BE(api, 4);
      head.writeInt16BE(version, 6);
      head.writeInt32BE(api, 8); // correlation id
      head.writeInt16BE(-1, 12); // no client id
      send(Buffer.concat([head, body]));
      return answer((bytes) => {
        if (bytes.length < 8 || bytes.length < 4 + bytes.readUInt32BE(0)) return undefined;
        if (bytes.readInt32BE(4) !== api) throw new Error('an answer to a question that was not asked');
        const used = 4 + bytes.readUInt32BE(0);
        return { value: bytes.subarray(8, used), used };
      });
    };
    const versions = await request(18, 0, Buffer.alloc(0));
    if (versions.readInt16BE(0) !== 0) throw new Error(`ApiVersions answered error ${versions.readInt16BE(0)}`);
    const metadata = await request(3, 1, Buffer.alloc(4)); // of no topic
    if (metadata.readInt32BE(0) < 1) throw new Error('no broker is registered yet');
    return '';
  });
}
