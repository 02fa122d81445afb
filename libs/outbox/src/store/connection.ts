import type { Sql } from './dialect';

/** A statement's way to the database that tells how many rows it changed. */
export interface ChangingSql extends Sql {
  change(statement: string, parameters?: unknown[]): Promise<number>;
}

/** A connection that one worker has for itself. */
export interface Connection extends ChangingSql {
  begin(): Promise<void>;
  commit(): Promise<void>;
  /** Never fails: a connection that is gone has rolled back. */
  rollback(): Promise<void>;
  /** Calls the listener at each signal that the session has asked for. */
  onSignal(listener: () => void): void;
  onLost(listener: (cause: Error) => void): void;
  /** From now on the server hears of it even while it has nothing to do, until it is closed: else it would end it. */
  keepAwake(): void;
  /** Never fails. */
  close(): Promise<void>;
}

/** Runs work in a transaction. */
export async function inTransaction<T>(connection: Connection, work: () => Promise<T>): Promise<T> {
  await connection.begin();
  try {
    const result = await work();
    await connection.commit();
    return result;
  } catch (error) {
    await connection.rollback();
    throw error;
  }
}
