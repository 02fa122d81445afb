import { DataSource, type DataSourceOptions } from 'typeorm';
import type { AmbientTransactions } from '../transaction/ambient-transactions';
import type { ClaimSession } from '../store/claim';
import type { OutboxStore } from '../store/outbox-store';
import { SerialClaimSession } from '../store/serial-claim-session';
import { TransactionalClaimSession } from '../store/transactional-claim-session';
import type { ClaimSessions } from './relay';

/** Sessions over a small pool of the relay's own, so that it never takes a connection from the app. */
export class PooledClaimSessions implements ClaimSessions {
  private dataSource: DataSource | undefined;
  private opening: Promise<DataSource> | undefined;

  constructor(
    private readonly store: OutboxStore,
    private readonly options: DataSourceOptions,
    private readonly workers: number,
  ) {}

  async open(): Promise<ClaimSession> {
    this.opening ??= this.connect();
    let dataSource: DataSource;
    try {
      dataSource = await this.opening;
    } catch (error) {
      this.opening = undefined;
      throw error;
    }
    const queryRunner = dataSource.createQueryRunner('master');
    return new TransactionalClaimSession(this.store, queryRunner);
  }

  async close(): Promise<void> {
    const { dataSource } = this;
    this.dataSource = undefined;
    this.opening = undefined;
    if (dataSource?.isInitialized) await dataSource.destroy();
  }

  private async connect(): Promise<DataSource> {
    const dataSource = new DataSource({
      ...this.options,
      entities: [],
      subscribers: [],
      migrations: [],
      synchronize: false,
      migrationsRun: false,
      dropSchema: false,
      cache: false,
      logging: false,
      poolSize: this.workers + 1,
    } as DataSourceOptions);
    this.dataSource = await dataSource.initialize();
    return this.dataSource;
  }
}

/** Sessions on the app's one connection. */
export class SerialClaimSessions implements ClaimSessions {
  constructor(
    private readonly store: OutboxStore,
    private readonly ambient: AmbientTransactions,
  ) {}

  async open(): Promise<ClaimSession> {
    return new SerialClaimSession(this.store, this.ambient.createQueryRunner());
  }

  async close(): Promise<void> {
    // The connection is the app's.
  }
}
