import type { DataSource } from 'typeorm';
import type { ClaimSession } from '../../libs/outbox/src/store/claim';
import type { Connection } from '../../libs/outbox/src/store/connection';
import type { OutboxStore } from '../../libs/outbox/src/store/outbox-store';
import { RelayConnection } from '../../libs/outbox/src/store/relay-connection';
import { SerialClaimSession } from '../../libs/outbox/src/store/serial-claim-session';
import { SerialConnection } from '../../libs/outbox/src/store/serial-connection';
import { TransactionalClaimSession } from '../../libs/outbox/src/store/transactional-claim-session';

/** A connection as a relay has it. */
export async function openConnection(store: OutboxStore, dataSource: DataSource, timeout = 10_000): Promise<Connection> {
  const queryRunner = dataSource.createQueryRunner();
  if (store.dialect.name === 'sqlite') return new SerialConnection(queryRunner);
  return RelayConnection.open(queryRunner, store.dialect, timeout);
}

/** A claim session as a relay has it. */
export async function openClaimSession(store: OutboxStore, dataSource: DataSource): Promise<ClaimSession> {
  const connection = await openConnection(store, dataSource);
  return store.dialect.name === 'sqlite'
    ? new SerialClaimSession(store, connection)
    : new TransactionalClaimSession(store, connection);
}
