import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type * as promClient from 'prom-client';
import { OutboxHealthIndicator } from '../observe/health-indicator';
import type { OutboxMetrics } from '../observe/metrics/outbox-metrics';
import type { OutboxCore } from '../outbox-core';
import { Failure } from './failure';

/** Figures and health of a relay for those who look after it: `/metrics`, `/health/live` and `/health/ready`. */
export class StatusServer {
  private health: OutboxHealthIndicator | undefined;
  private isStopping = false;
  private readonly server: Server = createServer((request, response) => void this.answer(request, response));

  private constructor(
    private readonly registry: promClient.Registry,
    readonly metrics: OutboxMetrics,
  ) {}

  /** @throws Failure without prom-client */
  static async create(): Promise<StatusServer> {
    let library: typeof promClient;
    try {
      library = await import('prom-client');
    } catch (cause) {
      throw new Failure('--metrics-port needs the package prom-client: npm install prom-client.', 1, { cause });
    }
    const registry = new library.Registry();
    const { prometheusMetrics } = await import('../observe/prometheus/prometheus-metrics.js');
    return new StatusServer(registry, prometheusMetrics({ registry }));
  }

  /** @returns the port, where 0 asks for any @throws Failure when the port is not to be had */
  async listen(port: number, { health, relay, consumerEvents }: OutboxCore): Promise<number> {
    this.health = new OutboxHealthIndicator(health, relay, consumerEvents);
    await new Promise<void>((resolve, reject) => {
      this.server.once('error', (cause) => reject(new Failure(`--metrics-port ${port} cannot be had: ${cause.message}`, 1, { cause })));
      this.server.listen(port, resolve);
    });
    const address = this.server.address();
    return typeof address === 'object' && address !== null ? address.port : port;
  }

  /** Not ready any more, and alive. */
  stopping(): void {
    this.isStopping = true;
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.server.close(resolve));
    this.server.closeAllConnections();
    await closed;
  }

  private async answer({ url, method }: IncomingMessage, response: ServerResponse): Promise<void> {
    if (method !== 'GET' && method !== 'HEAD') return void response.writeHead(405).end();
    try {
      const [status, type, body] = await this.look(url?.split('?')[0]);
      response.writeHead(status, { 'Content-Type': type, 'Cache-Control': 'no-store' }).end(body);
    } catch (error) {
      response.writeHead(500, { 'Content-Type': 'text/plain' }).end(error instanceof Error ? error.message : String(error));
    }
  }

  private async look(path: string | undefined): Promise<readonly [number, string, string]> {
    const { health } = this;
    if (path === '/metrics') return [200, this.registry.contentType, await this.registry.metrics()];
    if (path === '/health/live' && health) return json(health.alive('relay').relay);
    if (path === '/health/ready' && health) {
      const { relay } = await health.relay('relay');
      return json(this.isStopping ? { ...relay, status: 'down', reasons: ['the relay is about to stop'] } : relay);
    }
    return [404, 'text/plain', 'There are /metrics, /health/live and /health/ready.'];
  }
}

function json(result: { readonly status: 'up' | 'down' }): readonly [number, string, string] {
  return [result.status === 'up' ? 200 : 503, 'application/json', JSON.stringify(result)];
}
