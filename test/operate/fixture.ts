import { Cleaner } from '../../libs/outbox/src/operate/cleaner';
import { OutboxAdmin } from '../../libs/outbox/src/operate/outbox-admin';
import { DEFAULT_RETENTION } from '../../libs/outbox/src/operate/retention-options';
import { PooledClaimSessions, SerialClaimSessions } from '../../libs/outbox/src/relay/claim-sessions';
import { Relays } from '../relay/fixture';
import type { StoreFixture } from '../store/fixture';

export const BY = { by: 'anna', reason: 'test' };

/** An operator of the store, and relays beside. */
export class Operation {
  readonly relays: Relays;
  private readonly admins: OutboxAdmin[] = [];

  constructor(readonly f: StoreFixture) {
    this.relays = new Relays(f);
  }

  admin(): OutboxAdmin {
    const { store, dataSource } = this.f;
    const open = () =>
      store.dialect.name === 'sqlite'
        ? new SerialClaimSessions(store, () => this.relays.serial.create())
        : new PooledClaimSessions(store, dataSource.options, { workers: 1, sessionTimeout: 10_000 });
    const admin = new OutboxAdmin(dataSource, store, open, new Cleaner(store, open, DEFAULT_RETENTION), () => undefined);
    this.admins.push(admin);
    return admin;
  }

  async close(): Promise<void> {
    await this.relays.stopAll();
    for (const admin of this.admins.splice(0)) await admin.close();
  }
}
