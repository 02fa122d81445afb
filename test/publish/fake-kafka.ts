import { once } from 'node:events';
import net from 'node:net';
import { readProduceRequest } from '../../libs/outbox/src/publish/kafkajs/produce-protocol';

/**
 * What a broker does with a produce request: answers an error code for each partition (0: stored; a partition that is
 * not mentioned is left out of the answer), never answers, or closes the connection.
 */
export type FakeAnswer = Readonly<Record<string, number>> | 'silence' | 'close';

export interface FakeProduce {
  readonly node: number;
  readonly units: readonly string[];
}

type OnProduce = (produce: FakeProduce) => FakeAnswer | Promise<FakeAnswer>;

/**
 * Brokers that speak as much of Kafka's protocol as a producer needs, and do as they are told. Clients that ask for
 * versions in the old form get old versions of all, others (`flexible`) the oldest ones of the new form.
 */
export class FakeKafka {
  readonly produced: FakeProduce[] = [];
  connections = 0;
  /** Idempotent producers that were given an id. */
  producers = 0;
  onProduce: OnProduce = ({ units }) => Object.fromEntries(units.map((unit) => [unit, 0]));
  /** Leader of each partition of each topic; -1 for none. */
  readonly topics = new Map<string, readonly number[]>();
  private readonly servers: net.Server[] = [];
  private readonly sockets = new Set<net.Socket>();
  private readonly offsets = new Map<string, number>();

  static async start(nodes: number): Promise<FakeKafka> {
    const kafka = new FakeKafka();
    for (let node = 0; node < nodes; node += 1) {
      const server = net.createServer((socket) => kafka.serve(node, socket)).listen(0, '127.0.0.1');
      await once(server, 'listening');
      kafka.servers.push(server);
    }
    return kafka;
  }

  get brokers(): string[] {
    return this.servers.map((server) => `127.0.0.1:${portOf(server)}`);
  }

  get openConnections(): number {
    return this.sockets.size;
  }

  /** Stops reading, as a host does that is frozen. */
  freeze(): void {
    for (const socket of this.sockets) socket.pause();
  }

  thaw(): void {
    for (const socket of this.sockets) socket.resume();
  }

  /** Closes a broker, which stays in the metadata. */
  async stopNode(node: number): Promise<void> {
    const server = this.servers[node];
    if (server === undefined) throw new RangeError(`no broker ${node}`);
    this.ports.set(node, portOf(server));
    server.close();
    for (const socket of this.sockets) socket.destroy();
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    for (const server of this.servers) server.close();
  }

  private readonly ports = new Map<number, number>();

  private serve(node: number, socket: net.Socket): void {
    this.connections += 1;
    this.sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => this.sockets.delete(socket));
    let chunks: Buffer[] = [];
    let turn = Promise.resolve();
    socket.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      const [first] = chunks;
      const length = chunks.reduce((sum, part) => sum + part.length, 0);
      if (first !== undefined && first.length >= 4 && length < 4 + first.readInt32BE(0)) return;
      let buffered = Buffer.concat(chunks);
      while (buffered.length >= 4 && buffered.length >= 4 + buffered.readInt32BE(0)) {
        const frame = buffered.subarray(0, 4 + buffered.readInt32BE(0));
        buffered = buffered.subarray(frame.length);
        turn = turn.then(() => this.answer(node, socket, frame));
      }
      chunks = [buffered];
    });
  }

  private async answer(node: number, socket: net.Socket, frame: Buffer): Promise<void> {
    const body = await this.bodyFor(node, socket, frame);
    if (body === null || socket.destroyed) return;
    const out = new Writer().int32(frame.readInt32BE(8)).bytes(body);
    socket.write(new Writer().int32(out.length).bytes(out.buffer).buffer);
  }

  private async bodyFor(node: number, socket: net.Socket, frame: Buffer): Promise<Buffer | null> {
    const api = frame.readInt16BE(4);
    const version = frame.readInt16BE(6);
    if (api === 18) return version < 3 ? apiVersions() : flexibleApiVersions();
    if (api === 3) return version < 9 ? this.metadata(frame) : this.flexibleMetadata(frame);
    if (api === 22) {
      this.producers += 1;
      const producer = new Writer().int32(0).int16(0).int64(7).int16(0).buffer;
      return version < 2 ? producer : new Writer().int8(0).bytes(producer).int8(0).buffer;
    }
    const request = readProduceRequest(frame);
    if (request === null) throw new Error(`the fake broker does not know api ${api}`);
    this.produced.push({ node, units: request.units });
    const answer = await this.onProduce({ node, units: request.units });
    if (answer === 'close') socket.destroy();
    if (typeof answer === 'string') return null;
    const entries = Object.entries(answer);
    const out = new Writer().int32(entries.length);
    for (const [unit, code] of entries) {
      const [topic = '', partition] = unit.split('/');
      const offset = this.offsets.get(unit) ?? 0;
      if (code === 0) this.offsets.set(unit, offset + 1_000);
      out.string(topic).int32(1).int32(Number(partition)).int16(code).int64(code === 0 ? offset : -1).int64(-1).int64(0);
    }
    return out.int32(0).buffer;
  }

  private metadata(frame: Buffer): Buffer {
    let at = 14 + Math.max(0, frame.readInt16BE(12));
    const count = frame.readInt32BE(at);
    at += 4;
    const asked = Array.from({ length: Math.max(0, count) }, () => {
      const length = frame.readInt16BE(at);
      at += 2 + length;
      return frame.toString('utf8', at - length, at);
    });
    const out = new Writer().int32(0).int32(this.servers.length);
    this.servers.forEach((server, node) => {
      out.int32(node).string('127.0.0.1').int32(this.ports.get(node) ?? portOf(server)).int16(-1);
    });
    out.int16(-1).int32(0).int32(asked.length);
    for (const topic of asked) {
      const leaders = this.topics.get(topic);
      out.int16(leaders === undefined ? 3 : 0).string(topic).int8(0).int32(leaders?.length ?? 0);
      leaders?.forEach((leader, partition) => {
        out.int16(leader < 0 ? 5 : 0).int32(partition).int32(leader).int32(0).int32(0).int32(0);
      });
    }
    return out.buffer;
  }

  private flexibleMetadata(frame: Buffer): Buffer {
    let at = 15 + Math.max(0, frame.readInt16BE(12));
    // Lengths of the new form are one too large; those of the tests take one byte.
    const asked = Array.from({ length: frame.readUInt8(at++) - 1 }, () => {
      const length = frame.readUInt8(at) - 1;
      at += 1 + length + 1;
      return frame.toString('utf8', at - 1 - length, at - 1);
    });
    const out = new Writer().int8(0).int32(0).int8(this.servers.length + 1);
    this.servers.forEach((server, node) => {
      out.int32(node).compact('127.0.0.1').int32(this.ports.get(node) ?? portOf(server)).int8(0).int8(0);
    });
    out.int8(0).int32(0).int8(asked.length + 1);
    for (const topic of asked) {
      const leaders = this.topics.get(topic);
      out.int16(leaders === undefined ? 3 : 0).compact(topic).int8(0).int8((leaders?.length ?? 0) + 1);
      leaders?.forEach((leader, partition) => {
        out.int16(leader < 0 ? 5 : 0).int32(partition).int32(leader).int32(0).int8(1).int8(1).int8(1).int8(0);
      });
      out.int32(0).int8(0);
    }
    return out.int32(0).int8(0).buffer;
  }
}

function portOf(server: net.Server): number {
  return (server.address() as net.AddressInfo | null)?.port ?? 0;
}

function apiVersions(): Buffer {
  const apis: [number, number][] = [[0, 7], [3, 6], [18, 2], [22, 1]];
  const out = new Writer().int16(0).int32(apis.length);
  for (const [api, newest] of apis) out.int16(api).int16(0).int16(newest);
  return out.int32(0).buffer;
}

function flexibleApiVersions(): Buffer {
  const apis: [number, number][] = [[0, 7], [3, 9], [18, 3], [22, 3]];
  const out = new Writer().int16(0).int8(apis.length + 1);
  for (const [api, version] of apis) out.int16(api).int16(version).int16(version).int8(0);
  return out.int32(0).int8(0).buffer;
}

class Writer {
  private readonly parts: Buffer[] = [];

  get buffer(): Buffer {
    return Buffer.concat(this.parts);
  }

  get length(): number {
    return this.buffer.length;
  }

  bytes(bytes: Buffer): this {
    this.parts.push(bytes);
    return this;
  }

  int8(value: number): this {
    return this.bytes(Buffer.from([value & 0xff]));
  }

  int16(value: number): this {
    const bytes = Buffer.alloc(2);
    bytes.writeInt16BE(value);
    return this.bytes(bytes);
  }

  int32(value: number): this {
    const bytes = Buffer.alloc(4);
    bytes.writeInt32BE(value);
    return this.bytes(bytes);
  }

  int64(value: number): this {
    const bytes = Buffer.alloc(8);
    bytes.writeBigInt64BE(BigInt(value));
    return this.bytes(bytes);
  }

  /** A string of the new form, of less than 127 bytes. */
  compact(value: string): this {
    return this.int8(Buffer.byteLength(value) + 1).bytes(Buffer.from(value));
  }

  string(value: string): this {
    return this.int16(Buffer.byteLength(value)).bytes(Buffer.from(value));
  }
}
