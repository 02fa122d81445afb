import { DataSource, type DataSourceOptions, type QueryRunner } from 'typeorm';
import type { ClaimSession } from '../store/claim';
import type { Connection } from '../store/connection';
import type { OutboxStore } from '../store/outbox-store';
import { RelayConnection } from '../store/relay-connection';
import { SerialClaimSession } from '../store/serial-claim-session';
import { SerialConnection } from '../store/serial-connection';
import { TransactionalClaimSession } from '../store/transactional-claim-session';

/** Opens what the workers of one relay claim through. */
export interface ClaimSessions {
  openSession(): Promise<ClaimSession>;
  /** A connection for work besides claims. */
  openConnection(): Promise<Connection>;
  close(): Promise<void>;
}

/** How long the pool may take to say goodbye to the database, in ms. */
const CLOSE_TIMEOUT = 2000;

/** Sessions over a small pool of the relay's own, so that it never takes a connection from the app. */
export class PooledClaimSessions implements ClaimSessions {
  private opening: Promise<DataSource> | undefined;

  constructor(
    private readonly store: OutboxStore,
    private readonly options: DataSourceOptions,
    private readonly settings: { readonly workers: number; readonly sessionTimeout: number },
  ) {}

  async openSession(): Promise<ClaimSession> {
    return new TransactionalClaimSession(this.store, await this.openConnection());
  }

  async openConnection(): Promise<Connection> {
    const dataSource = await this.pool();
    return RelayConnection.open(dataSource.createQueryRunner('master'), this.store.dialect, this.settings.sessionTimeout);
  }

  async close(): Promise<void> {
    const { opening } = this;
    this.opening = undefined;
    const dataSource = await opening?.catch(() => undefined);
    if (!dataSource?.isInitialized) return;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, CLOSE_TIMEOUT);
    });
    await Promise.race([dataSource.destroy().catch(() => undefined), late]);
    clearTimeout(timer);
  }

  private async open(): Promise<DataSource> {
    const dataSource = await new DataSource(relayDataSource(this.options, this.settings)).initialize();
    this.store.dialect.preparePool(dataSource.driver);
    return dataSource;
  }

  private async pool(): Promise<DataSource> {
    const opening = (this.opening ??= this.open());
    try {
      return await opening;
    } catch (error) {
      if (this.opening === opening) this.opening = undefined;
      throw error;
    }
  }
}

/** The app's own way to the database, whatever it is made of, with a pool of the relay's size. */
function relayDataSource(
  options: DataSourceOptions,
  { workers, sessionTimeout }: { readonly workers: number; readonly sessionTimeout: number },
): DataSourceOptions {
  // Sizes of the app's pool are not ours.
  const { connectionLimit, max, min, ...extra } = ('extra' in options ? (options.extra as Record<string, unknown>) : undefined) ?? {};
  void [connectionLimit, max, min];
  const timeout = options.type === 'postgres' ? { connectTimeoutMS: options.connectTimeoutMS ?? sessionTimeout } : {};
  return Object.assign({}, options, {
    ...timeout,
    extra,
    entities: [],
    subscribers: [],
    migrations: [],
    synchronize: false,
    migrationsRun: false,
    dropSchema: false,
    cache: false,
    logging: false,
    maxQueryExecutionTime: undefined,
    // One for the sweeper, and where there are signals one that listens.
    poolSize: workers + (options.type === 'postgres' ? 2 : 1),
  });
}

/** Sessions on the app's one connection. */
export class SerialClaimSessions implements ClaimSessions {
  constructor(
    private readonly store: OutboxStore,
    private readonly createQueryRunner: () => QueryRunner,
  ) {}

  async openSession(): Promise<ClaimSession> {
    return new SerialClaimSession(this.store, new SerialConnection(this.createQueryRunner()));
  }

  async openConnection(): Promise<Connection> {
    return new SerialConnection(this.createQueryRunner());
  }

  async close(): Promise<void> {
    // The connection is the app's.
  }
}
