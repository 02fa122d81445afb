import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { TcpProxy } from './src/tcp-proxy.js';

/** Not `once`, which rejects when an error comes before. */
function closed(socket: Socket | undefined): Promise<void> {
  return new Promise((resolve) => {
    if (!socket || socket.destroyed) resolve();
    else socket.once('close', () => resolve());
  });
}

describe('the TCP proxy', () => {
  let server: Server;
  let proxy: TcpProxy;
  const accepted: Socket[] = [];
  let received = '';

  beforeEach(async () => {
    received = '';
    server = createServer((socket) => {
      accepted.push(socket);
      socket.on('error', () => undefined);
      socket.on('data', (chunk) => {
        received += chunk.toString();
        socket.write(chunk);
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    proxy = await TcpProxy.listen({ host: '127.0.0.1', port: (server.address() as AddressInfo).port });
  });
  afterEach(async () => {
    await proxy.close();
    for (const socket of accepted.splice(0)) socket.destroy();
    server.close();
  });

  async function client(): Promise<Socket> {
    const socket = connect({ host: '127.0.0.1', port: proxy.port });
    socket.on('error', () => undefined);
    await once(socket, 'connect');
    return socket;
  }

  async function echo(socket: Socket, text: string): Promise<string> {
    let back = '';
    socket.write(text);
    while (back.length < text.length) {
      const [chunk] = (await once(socket, 'data')) as [Buffer];
      back += chunk.toString();
    }
    return back;
  }

  it('lets bytes pass, and knows the port that the server sees', async () => {
    const socket = await client();
    expect(await echo(socket, 'hello')).toBe('hello');
    expect(proxy.outgoingPorts).toEqual([accepted[0]?.remotePort]);
    socket.destroy();
  });

  it('keeps the order of bytes when it is slow', async () => {
    proxy.set('slow');
    const socket = await client();
    const text = Array.from({ length: 500 }, (_, index) => `${index},`).join('');
    for (let i = 0; i < text.length; i += 700) socket.write(text.slice(i, i + 700));
    let back = '';
    while (back.length < text.length) {
      const [chunk] = (await once(socket, 'data')) as [Buffer];
      back += chunk.toString();
    }
    expect(back).toBe(text);
    socket.destroy();
  });

  it('breaks connections off and refuses new ones when it is cut', async () => {
    const socket = await client();
    await echo(socket, 'a');
    proxy.set('cut');
    await closed(socket);
    const refused = connect({ host: '127.0.0.1', port: proxy.port });
    refused.on('error', () => undefined);
    await closed(refused);
    proxy.set('open');
    expect(await echo(await client(), 'b')).toBe('b');
  });

  it('delivers after a stall what was sent in it', async () => {
    const socket = await client();
    await echo(socket, 'a');
    proxy.set('stalled');
    const answer = echo(socket, 'b');
    expect(received).toBe('a');
    proxy.set('open');
    expect(await answer).toBe('b');
  });

  it('keeps answers back when the server is unheard', async () => {
    const socket = await client();
    await echo(socket, 'a');
    proxy.set('unheard');
    const answer = echo(socket, 'b');
    await expect.poll(() => received).toBe('ab');
    proxy.set('open');
    expect(await answer).toBe('b');
  });

  it('throws away what a sender that gave up had sent in a stall', async () => {
    const socket = await client();
    await echo(socket, 'a');
    proxy.set('stalled');
    socket.write('b');
    await new Promise((resolve) => setTimeout(resolve, 50));
    socket.resetAndDestroy();
    await closed(accepted[0]);
    proxy.set('open');
    expect(await echo(await client(), 'c')).toBe('c');
    expect(received).toBe('ac');
  });

  it('keeps the server in the belief that a vanished client is there', async () => {
    const socket = await client();
    await echo(socket, 'a');
    expect(proxy.vanish()).toBe(1);
    await closed(socket);
    expect(await echo(await client(), 'b')).toBe('b');
    expect(accepted[0]?.destroyed).toBe(false);
    accepted[0]?.destroy();
  });
});
