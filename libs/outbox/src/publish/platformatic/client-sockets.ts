import type { Socket } from 'node:net';
import type { Base, Connection } from '@platformatic/kafka' with { 'resolution-mode': 'import' };
import { abortSocket } from '../kafka/abort-socket';

/**
 * The connections of one producer or admin. Its `close()` first sends what waits in the sockets' buffers, and knows
 * nothing of connections that it has given up; what has no socket, and can get none, sends nothing.
 */
export class ClientSockets {
  private readonly open = new Set<Connection>();

  /** @param close ends the client without waiting for anything, so that waiting retries end and timers go */
  constructor(
    client: Pick<Base, 'connections'>,
    private readonly close: () => void,
  ) {
    client.connections.on('connecting', ({ connection }: { connection: Connection }) => {
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
    this.close();
  }
}
