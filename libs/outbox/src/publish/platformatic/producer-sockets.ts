import type { Socket } from 'node:net';
import type { Connection, Producer } from '@platformatic/kafka' with { 'resolution-mode': 'import' };
import { abortSocket } from '../kafka/abort-socket';

/**
 * The connections of one producer. Its `close()` first sends what waits in the sockets' buffers, and knows nothing of
 * connections that it has given up; what has no socket, and can get none, sends nothing.
 */
export class ProducerSockets {
  private readonly open = new Set<Connection>();

  constructor(private readonly producer: Producer) {
    producer.connections.on('connecting', ({ connection }: { connection: Connection }) => {
      for (const known of this.open) if (known.socket?.destroyed) this.open.delete(known);
      this.open.add(connection);
      // The client listens for the first error only; a second one without a listener would end the process.
      connection.on('error', () => {});
    });
  }

  /** Closes everything at once. Nothing is sent after this. */
  stop(): void {
    for (const connection of this.open) {
      // It has none where the address cannot even be tried.
      const socket: Socket | undefined = connection.socket;
      if (socket !== undefined) abortSocket(socket);
    }
    this.open.clear();
    // Sees to it that no new connection is made, that waiting retries end and that timers go.
    this.producer.close(true, () => {});
  }
}
