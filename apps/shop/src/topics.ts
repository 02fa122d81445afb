/** Lets several shops share one Kafka, such as a demo beside a staging system. The same in all apps of one shop. */
export const TOPIC_PREFIX = process.env['TOPIC_PREFIX'] ?? '';

/** The topics of the shop: what the apps agree on, together with the event classes. */
export const Topics = {
  orders: `${TOPIC_PREFIX}orders`,
  stock: `${TOPIC_PREFIX}stock`,
} as const;

/** Where orders end that inventory cannot handle. */
export const ORDERS_DEAD_LETTERS = `${Topics.orders}.dlt`;
