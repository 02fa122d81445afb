import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/**
 * - `open`: bytes pass.
 * - `cut`: connections are broken off, new ones refused.
 * - `stalled`: connections stand, nothing passes. What waits for a side that has gone is thrown away, as a network
 *   without the sender would not deliver it either.
 * - `unheard`: the server gets everything, its answers do not pass.
 * - `slow`: each chunk comes late.
 */
export type ProxyMode = 'open' | 'cut' | 'stalled' | 'unheard' | 'slow';

const LATEST_MS = 400;
/** More than this is not taken in advance from a sender. */
const BUFFERED_BYTES = 8 * 1024 * 1024;

/** Stands between a client and a server, and can behave like a bad network. */
export class TcpProxy {
  private readonly pairs = new Set<Pair>();
  /** What servers still believe in. */
  private readonly abandoned = new Set<Socket>();
  private mode: ProxyMode = 'open';

  private constructor(
    private readonly server: Server,
    private readonly target: { readonly host: string; readonly port: number },
  ) {
    server.on('connection', (client: Socket) => this.accept(client));
  }

  static async listen(target: { readonly host: string; readonly port: number }): Promise<TcpProxy> {
    const server = createServer({ noDelay: true });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new TcpProxy(server, target);
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  /** The ports from which the server sees our connections come. */
  get outgoingPorts(): readonly number[] {
    return [...this.pairs].flatMap((pair) => pair.outgoingPort ?? []);
  }

  set(mode: ProxyMode): void {
    this.mode = mode;
    for (const pair of this.pairs) {
      if (mode === 'cut') pair.breakOff();
      else pair.pump();
    }
  }

  /**
   * Loses the clients without a word to the server, as when their host dies: the server finds out by its own timeouts.
   * Answers to how many connections it happened.
   */
  vanish(): number {
    const pairs = [...this.pairs];
    for (const pair of pairs) {
      const server = pair.vanish();
      this.abandoned.add(server);
      server.once('close', () => this.abandoned.delete(server));
    }
    return pairs.length;
  }

  async close(): Promise<void> {
    this.set('cut');
    for (const server of this.abandoned) reset(server);
    this.server.close();
    await once(this.server, 'close');
  }

  private accept(client: Socket): void {
    if (this.mode === 'cut') {
      client.on('error', () => undefined);
      reset(client);
      return;
    }
    const pair = new Pair(client, connect({ ...this.target, noDelay: true }), () => this.mode);
    this.pairs.add(pair);
    pair.onEnd = () => this.pairs.delete(pair);
  }
}

class Pair {
  onEnd: () => void = () => undefined;
  private vanished = false;
  private readonly there: Lane;
  private readonly back: Lane;

  constructor(
    private readonly client: Socket,
    private readonly server: Socket,
    mode: () => ProxyMode,
  ) {
    this.there = new Lane(client, server, () => (mode() === 'unheard' ? 'open' : mode()));
    this.back = new Lane(server, client, () => (mode() === 'unheard' ? 'stalled' : mode()));
    for (const socket of [client, server]) {
      socket.on('error', () => this.breakOff());
      socket.on('close', (hadError) => {
        if (this.vanished) return;
        if (hadError) this.breakOff();
        else if (client.destroyed && server.destroyed) this.onEnd();
      });
    }
  }

  get outgoingPort(): number | undefined {
    return this.server.destroyed ? undefined : this.server.localPort;
  }

  pump(): void {
    this.there.pump();
    this.back.pump();
  }

  /** Answers with the server's side, which stays. */
  vanish(): Socket {
    this.vanished = true;
    this.there.clear();
    this.back.clear();
    reset(this.client);
    this.onEnd();
    return this.server;
  }

  breakOff(): void {
    if (this.vanished) return;
    this.there.clear();
    this.back.clear();
    reset(this.client);
    reset(this.server);
    this.onEnd();
  }
}

/** A reset, so that the other side gets nothing that still waits. */
function reset(socket: Socket): void {
  if (socket.destroyed) return;
  // A reset that is asked for while connecting waits for that; one after `end` fails without a word, and Node hangs at exit.
  if (socket.connecting || socket.writableEnded) socket.destroy();
  else socket.resetAndDestroy();
}

/** One direction of a connection: keeps the order of the bytes, whatever the delays. */
class Lane {
  private readonly queue: (Buffer | 'end')[] = [];
  private bytes = 0;
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly from: Socket,
    private readonly to: Socket,
    private readonly mode: () => ProxyMode,
  ) {
    from.on('data', (chunk: Buffer) => this.push(chunk));
    from.on('end', () => this.push('end'));
    to.on('drain', () => this.pump());
  }

  pump(): void {
    if (this.timer) return;
    const mode = this.mode();
    if (mode === 'stalled') return;
    if (mode === 'slow') {
      this.timer = setTimeout(() => {
        this.timer = undefined;
        if (this.mode() !== 'stalled') this.sendOne();
        this.pumpIfAny();
      }, Math.random() * LATEST_MS);
      return;
    }
    while (this.queue.length > 0 && !this.to.writableNeedDrain) this.sendOne();
  }

  clear(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.queue.length = 0;
    this.bytes = 0;
  }

  private push(item: Buffer | 'end'): void {
    if (this.to.destroyed) return;
    this.queue.push(item);
    if (item !== 'end') this.bytes += item.length;
    if (this.bytes > BUFFERED_BYTES) this.from.pause();
    this.pump();
  }

  private pumpIfAny(): void {
    if (this.queue.length > 0) this.pump();
  }

  private sendOne(): void {
    const item = this.queue.shift();
    if (item === undefined) return;
    if (item === 'end') {
      this.to.end();
      return;
    }
    this.bytes -= item.length;
    if (this.bytes <= BUFFERED_BYTES && this.from.isPaused()) this.from.resume();
    if (!this.to.destroyed) this.to.write(item);
  }
}
