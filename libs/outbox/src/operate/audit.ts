import { Logger } from '@nestjs/common';
import { OperationInvalidError } from '../errors';

/** Who acts, and why. It is written to the log with the act and what has come of it. */
export interface Operator {
  /** Who asks for it, such as a user's name. */
  readonly by: string;
  /** Why, for those who look later. */
  readonly reason: string;
}

/** Writes down every act of an operator: one line when it has ended, well or not. */
export class Audit {
  private readonly logger = new Logger('OutboxAdmin');

  /** @throws OperationInvalidError when it is not said who acts, or why */
  async record<T>(act: string, operator: Operator, target: object, work: () => Promise<T>): Promise<T> {
    const { by, reason } = operator ?? {};
    for (const [name, value] of Object.entries({ by, reason })) {
      if (typeof value !== 'string' || value.trim() === '') throw new OperationInvalidError(`${act}: say who acts and why, with { by, reason }; ${name} is missing.`);
    }
    try {
      const result = await work();
      this.logger.log({ act, by, reason, target, result: brief(result) });
      return result;
    } catch (error) {
      this.logger.error({ act, by, reason, target, error: error instanceof Error ? error.message : String(error) });
      throw error;
    }
  }
}

/** Most ids of a list that go into the log. */
const MAX_LISTED = 20;

function brief(result: unknown): unknown {
  if (typeof result !== 'object' || result === null) return result;
  return Object.fromEntries(
    Object.entries(result).map(([name, value]) => [name, Array.isArray(value) && value.length > MAX_LISTED ? `${value.length} of them` : (value as unknown)]),
  );
}
