import { setTimeout } from 'node:timers/promises';
import type { Delivery } from './delivery';

/** How often Kafka is told, in milliseconds. The client itself sends no more than its heartbeatInterval asks for. */
const INTERVAL = 1000;

/** Keeps this member in its group while a handler works, however long that takes. */
export async function keepAlive<T>({ heartbeat }: Delivery, work: () => Promise<T>): Promise<T> {
  if (!heartbeat) return work();
  // When the group changes meanwhile, the client notices as soon as the handler has ended.
  const timer = setInterval(() => void heartbeat().catch(() => undefined), INTERVAL);
  try {
    return await work();
  } finally {
    clearInterval(timer);
  }
}

/** Pauses between two attempts. False when the group is changing, so that the message had better be given back. */
export async function pause({ heartbeat }: Delivery, ms: number): Promise<boolean> {
  for (let left = ms; left > 0; left -= INTERVAL) {
    await setTimeout(Math.min(left, INTERVAL));
    try {
      await heartbeat?.();
    } catch {
      return false;
    }
  }
  return true;
}
