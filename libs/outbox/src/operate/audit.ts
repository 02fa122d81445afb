import { Logger } from '@nestjs/common';
import { OperationInvalidError } from '../errors';
import { beginAct, endAct, noteAct, type NotedAct } from '../store/audit';
import type { Connection } from '../store/connection';
import type { Sql } from '../store/dialect';
import type { OutboxStore } from '../store/outbox-store';
import type { OperatorConnections } from './operator-connections';

/** Who acts, and why. It is written down with the act and what has come of it. */
export interface Operator {
  /** Who asks for it, such as a user's name: at most 190 characters. */
  readonly by: string;
  /** Why, for those who look later: at most 500 characters. */
  readonly reason: string;
}

/** Lets an act that is under way write down what it has done, in the transaction that does it. */
export interface AuditEntry {
  /** What was done so far, and to which messages just now. */
  note(sql: Sql, result: object, ids?: readonly string[]): Promise<void>;
  /** Says that what was noted last is committed. */
  committed(): void;
  /** As `note`, when there is nothing more to come. */
  done(sql: Sql, result: unknown): Promise<void>;
}

const MAX_LENGTH = { by: 190, reason: 500 };

/**
 * Writes down every act of an operator, in the table `outbox_audit` and as a line in the log. It is in the table before
 * it begins, so that none goes without; what it has done is written there in the transactions that do it.
 */
export class Audit {
  private readonly logger = new Logger('OutboxAdmin');

  constructor(
    private readonly store: OutboxStore,
    private readonly connections: OperatorConnections,
  ) {}

  /** @throws OperationInvalidError when it is not said who acts, or why */
  async record<T>(act: string, operator: Operator, target: object, work: (connection: Connection, entry: AuditEntry) => Promise<T>): Promise<T> {
    checkOperator(act, operator);
    const { by, reason } = operator;
    try {
      const result = await this.connections.use((connection) => this.keep(connection, { act, by, reason, target: JSON.stringify(target) }, work));
      this.logger.log({ act, by, reason, target, result: brief(result) });
      return result;
    } catch (error) {
      this.logger.error({ act, by, reason, target, error: textOf(error) });
      throw error;
    }
  }

  private async keep<T>(connection: Connection, begun: NotedAct, work: (connection: Connection, entry: AuditEntry) => Promise<T>): Promise<T> {
    const { dialect } = this.store;
    const id = await beginAct(connection, dialect, begun);
    let isOver = false;
    let soFar: object = {};
    let noted: object = {};
    const entry: AuditEntry = {
      async note(sql, result, ids = []) {
        noted = brief(result) as object;
        await noteAct(sql, dialect, id, JSON.stringify(noted), ids);
      },
      committed() {
        soFar = noted;
      },
      async done(sql, result) {
        await endAct(sql, dialect, id, 'done', JSON.stringify(brief(result)));
        isOver = true;
      },
    };
    try {
      const result = await work(connection, entry);
      if (!isOver) await entry.done(connection, result);
      return result;
    } catch (error) {
      // Where even that fails it stays as begun; the log has the error.
      await endAct(connection, dialect, id, 'failed', JSON.stringify({ ...soFar, error: textOf(error) })).catch(() => undefined);
      throw error;
    }
  }
}

function checkOperator(act: string, operator: Operator): void {
  const { by, reason } = operator ?? {};
  for (const [name, value] of Object.entries({ by, reason })) {
    if (typeof value !== 'string' || value.trim() === '') throw new OperationInvalidError(`${act}: say who acts and why, with { by, reason }; ${name} is missing.`);
    const most = MAX_LENGTH[name as keyof Operator];
    if (value.length > most || value.includes('\0')) throw new OperationInvalidError(`${act}: ${name} must be a text of at most ${most} characters.`);
  }
}

/** Most ids of a list that are written down as they are. */
const MAX_LISTED = 20;

function brief(result: unknown): unknown {
  if (typeof result !== 'object' || result === null) return result ?? null;
  return Object.fromEntries(
    Object.entries(result).map(([name, value]) => [name, Array.isArray(value) && value.length > MAX_LISTED ? `${value.length} of them` : (value as unknown)]),
  );
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
