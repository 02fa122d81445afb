export type ServiceName = 'mysql' | 'mariadb' | 'postgres' | 'kafka' | 'redis';

/** Older servers, to be had as private instances only. */
export type OlderServiceName = 'mysql-5.7' | 'mysql-8.0' | 'mariadb-10.2';

export interface ServiceInfo {
  name: ServiceName;
  /** Where it came from: given by an environment variable, or started with Docker Compose or natively. */
  source: 'environment' | 'docker' | 'native';
  host: string;
  port: number;
  /** Empty where the server has none. */
  user: string;
  password: string;
  database: string;
  /** For Kafka, the brokers as `host:port`. */
  url: string;
  /** Empty where the server does not tell. */
  version: string;
  /** Native servers only. */
  pid?: number;
  dataDir?: string;
  /** Kafka only. */
  brokers?: string[];
}

export interface UpOptions {
  /** Called with each progress line; by default they go to standard error. */
  log?: (line: string) => void;
}

export type UpResult<N extends ServiceName> = Record<N, ServiceInfo> & {
  /** The servers that this call started, to be stopped by who called (not enumerable). */
  readonly started: N[];
};

/**
 * Makes sure that these servers answer, all five where nothing is said. What answers already is left as it is.
 * Rejects with an `UpError` when any cannot be had; what was started by then stays.
 */
export function up<N extends ServiceName = ServiceName>(names?: readonly N[], options?: UpOptions): Promise<UpResult<N>>;

export class UpError extends Error {
  /** The servers that the failed call did start. */
  readonly started: ServiceName[];
  readonly errors: Partial<Record<ServiceName, Error>>;
}

export interface DownOptions extends UpOptions {
  /** Also what another running process asked for with `up`; otherwise that is left running. */
  force?: boolean;
}

/**
 * Stops these servers and deletes their data, never one given by the environment. Where nothing is said: all of
 * them, and the private instances whose owner is gone. Resolves to the names that were stopped.
 */
export function down(names?: readonly ServiceName[], options?: DownOptions): Promise<string[]>;

export interface ServiceStatus extends ServiceInfo {
  /** The name; of a private instance, name and number. */
  id: string;
  state: 'ready' | 'silent' | 'dead';
  /** Private instances only: the process that started it. */
  ownerPid?: number;
}

/** What is known of, private instances included. */
export function status(): Promise<ServiceStatus[]>;

/** The environment variables that name these servers, as far as they are given or were started. */
export function env(names?: readonly ServiceName[]): Record<string, string>;

export interface OwnOptions extends UpOptions {
  /**
   * Further settings of the server, by its own names: `{ 'log-bin': 'ON' }` for MySQL and MariaDB,
   * `{ wal_level: 'logical' }` for PostgreSQL, `{ 'message.max.bytes': '2000000' }` for Kafka; in those of a native
   * Kafka {port} and {controllerPort} stand for its ports.
   */
  settings?: Record<string, string>;
}

export interface OwnServer {
  readonly info: ServiceInfo;
  /** Undefined for one from Docker. Changes with `restart()`. */
  readonly pid: number | undefined;
  /** Stops it in order and keeps its data. */
  stop(): Promise<void>;
  /** Sends a signal. KILL, STOP and CONT reach its child processes too; after KILL it has gone when this resolves. */
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** Starts it again, after stopping it if need be, on the same port and data. Resolves when it answers. */
  restart(): Promise<void>;
  /** Stops it and deletes its data. */
  remove(): Promise<void>;
}

/** A fresh private instance, for who wants to stop, freeze or kill it. It is cleared away some time after its owner is gone. */
export function startOwn(name: ServiceName | OlderServiceName, options?: OwnOptions): Promise<OwnServer>;

export interface OwnClusterOptions extends OwnOptions {
  /** Brokers that may be killed. Default 2. */
  brokers?: number;
}

/**
 * A Kafka cluster: a first node, which is the controller and a broker and is left alone, so that the cluster outlives
 * its other brokers; and brokers to be stopped, frozen and killed. Topics that tests fight over belong on the latter.
 */
export interface OwnCluster {
  /** `host:port` of all nodes. */
  readonly addresses: string[];
  /** Ids of the brokers that may be killed. */
  readonly nodes: number[];
  broker(node: number): OwnServer;
  /** Stops all and deletes their data. */
  remove(): Promise<void>;
}

/** Always native: needs Java and Maven. */
export function startOwnCluster(options?: OwnClusterOptions): Promise<OwnCluster>;

export const serviceNames: readonly ServiceName[];

/** Java, and the arguments by which it finds Kafka's own clients. Rejects where Java or Maven is missing. */
export function kafkaJava(): Promise<{ command: string; args: string[] }>;

/** Prometheus's checker of rules and metrics; `undefined` where it is neither installed nor to be had with apt. */
export function promtool(say: (line: string) => void): Promise<string | undefined>;
