import { type KafkaClientName, readEnvironment, type Variables } from '../../shop/src/environment.js';

export interface OrdersEnvironment {
  readonly port: number;
  readonly databaseUrl: string;
  readonly brokers: readonly string[];
  readonly kafkaClient: KafkaClientName;
  /** Whether this process publishes its events itself; if not, the standalone relay does. */
  readonly relay: boolean;
}

/** @throws EnvironmentError */
export function ordersEnvironment(variables: Variables): OrdersEnvironment {
  return readEnvironment(variables, (reader) => ({
    port: reader.port(3000),
    databaseUrl: reader.databaseUrl(),
    brokers: reader.brokers(),
    kafkaClient: reader.kafkaClient(),
    relay: reader.onOff('OUTBOX_RELAY', true),
  }));
}
