import net from 'node:net';
import tls from 'node:tls';
import type { ISocketFactory } from 'kafkajs';
import { abortSocket } from '../kafka/abort-socket';
import { readProduceRequest } from './produce-protocol';
import type { ProduceTap } from './produce-tap';

const KEEP_ALIVE_DELAY = 60_000;

/**
 * The sockets of one producer. `producer.disconnect()` waits for requests on their way and does not end a retry that
 * waits for its turn; what has no socket, and can get none, sends nothing.
 */
export class ProducerSockets {
  private readonly open = new Set<net.Socket>();
  private stopped = false;

  constructor(
    private readonly tap: ProduceTap,
    private readonly createSocket: ISocketFactory = connectSocket,
  ) {}

  /** For kafkajs's `socketFactory`. */
  readonly factory: ISocketFactory = (args) => {
    if (this.stopped) throw new Error('the producer was stopped');
    const socket = this.createSocket(args);
    const connection = this.tap.connect();
    this.open.add(socket);
    socket.on('data', (chunk: Buffer) => connection.onData(chunk));
    socket.on('close', () => {
      this.open.delete(socket);
      connection.onClose();
    });
    const write = socket.write.bind(socket) as (...args: unknown[]) => boolean;
    socket.write = (...args: unknown[]): boolean => {
      const request = args[0] instanceof Uint8Array ? readProduceRequest(args[0]) : null;
      if (request !== null) connection.onWrite(request);
      return write(...args);
    };
    return socket;
  };

  /** Closes everything at once, bytes that wait in this host's buffers included. Nothing is sent after this. */
  stop(): void {
    this.stopped = true;
    for (const socket of this.open) abort(socket);
  }
}

function abort(socket: net.Socket): void {
  if (socket.destroyed) return;
  abortSocket(socket);
  // kafkajs does not listen for 'close': without an error its requests would stay open until they time out.
  socket.emit('error', new Error('the producer was stopped'));
}

/** What kafkajs does by itself. */
const connectSocket: ISocketFactory = ({ host, port, ssl, onConnect }) => {
  const socket = ssl
    ? tls.connect({ host, port, ...(net.isIP(host) ? {} : { servername: host }), ...ssl }, onConnect)
    : net.connect({ host, port }, onConnect);
  socket.setKeepAlive(true, KEEP_ALIVE_DELAY);
  return socket;
};
