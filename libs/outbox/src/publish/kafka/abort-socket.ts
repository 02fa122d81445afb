import type net from 'node:net';
import tls from 'node:tls';

/**
 * Ends a connection at once, bytes that wait in this host's buffers included.
 *
 * What it cannot take back is a batch that lies in the buffers of the broker's host. Measured with a frozen Kafka 4.3 on
 * one host: batches of up to 150 KB were stored when it thawed, once, and from 400 KB on none, since the reset cut them
 * off; a mere close delivered 900 KB. Such a late copy is a repeat with the same ids, and cannot come before its original
 * of the key, as nothing newer of the key is sent until the batch was acknowledged in a later try.
 */
export function abortSocket(socket: net.Socket): void {
  if (socket.destroyed) return;
  // A reset, not a close: a close would still deliver what the kernel holds of a batch that was given up. There is none
  // for TLS; one asked for while connecting waits for the connection; and one asked for after `end` fails without a
  // word, and Node then hangs at its exit.
  const resettable = !socket.connecting && !socket.writableEnded && !(socket instanceof tls.TLSSocket);
  if (resettable) socket.resetAndDestroy();
  else socket.destroy();
}
