import { FIRST_DELIVERY } from '../../../inventory/src/stock-delivery.js';

export interface CustomersOptions {
  /** Where the orders app listens. */
  readonly url: string;
  /** Valid orders to be placed. */
  readonly orders: number;
  /** Called after each accepted order; while it takes its time, the other customers go on. */
  readonly onAccepted: (accepted: number) => Promise<void>;
  readonly signal: AbortSignal;
}

export interface Answers {
  readonly accepted: number;
  /** Invalid orders that were answered with 400. */
  readonly turnedAway: number;
  /** Everything that should not be, such as a 500. */
  readonly unexpected: readonly string[];
}

/** Customers who order at the same time. */
const CUSTOMERS = 8;
/** After so many good orders comes one that makes no sense. */
const GOOD_ORDERS = 25;

/** Many customers over HTTP, some of whom order nonsense. */
export async function customersOrder({ url, orders, onAccepted, signal }: CustomersOptions): Promise<Answers> {
  const products = Object.keys(FIRST_DELIVERY);
  const unexpected: string[] = [];
  let next = 0;
  let accepted = 0;
  let turnedAway = 0;

  const post = async (body: object, expected: number): Promise<boolean> => {
    const response = await fetch(`${url}/orders`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal,
    });
    const text = await response.text();
    if (response.status !== expected) unexpected.push(`${response.status} ${text}`);
    return response.status === expected;
  };

  const customer = async (): Promise<void> => {
    while (next < orders) {
      const number = next++;
      const productId = products[number % products.length];
      if (await post({ productId, quantity: 1 + (number % 3) }, 201)) await onAccepted((accepted += 1));
      if (number % GOOD_ORDERS === 0 && (await post({ productId, quantity: -1 }, 400))) turnedAway += 1;
    }
  };
  await Promise.all(Array.from({ length: CUSTOMERS }, customer));
  return { accepted, turnedAway, unexpected };
}
