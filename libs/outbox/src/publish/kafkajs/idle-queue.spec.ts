import { expect, it } from 'vitest';
import { quietIdleQueues } from './idle-queue';

interface Queue {
  pending: unknown[];
  throttleCheckTimeoutId: unknown;
  scheduleCheckPendingRequests(): void;
  destroy(): void;
}

it('sets no timer while no request waits, and one while one does', () => {
  quietIdleQueues();
  quietIdleQueues();
  const RequestQueue = require('kafkajs/src/network/requestQueue') as new (options: object) => Queue;
  const logger = { debug: () => {} };
  const queue = new RequestQueue({ requestTimeout: 1_000, clientId: 'c', broker: 'b', logger, isConnected: () => true });
  queue.scheduleCheckPendingRequests();
  expect(queue.throttleCheckTimeoutId).toBeNull();
  queue.pending.push({});
  queue.scheduleCheckPendingRequests();
  expect(queue.throttleCheckTimeoutId).not.toBeNull();
  queue.destroy();
});
