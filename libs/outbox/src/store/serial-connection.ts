import type { QueryRunner } from 'typeorm';
import type { Connection } from './connection';

/** A view of the app's one connection. */
export class SerialConnection implements Connection {
  constructor(private readonly queryRunner: QueryRunner) {}

  query(statement: string, parameters?: unknown[]): Promise<unknown> {
    return this.queryRunner.query(statement, parameters) as Promise<unknown>;
  }

  async change(statement: string, parameters?: unknown[]): Promise<number> {
    const result = await this.queryRunner.query(statement, parameters, true);
    return result.affected ?? 0;
  }

  begin(): Promise<void> {
    return this.queryRunner.startTransaction();
  }

  commit(): Promise<void> {
    return this.queryRunner.commitTransaction();
  }

  async rollback(): Promise<void> {
    if (this.queryRunner.isTransactionActive) await this.queryRunner.rollbackTransaction().catch(() => undefined);
  }

  onSignal(): void {
    // There is no other process to hear of.
  }

  onLost(): void {
    // It lives as long as the app.
  }

  keepAwake(): void {
    // Nobody would end it.
  }

  async close(): Promise<void> {
    await this.queryRunner.release().catch(() => undefined);
  }
}
