import { type ArgumentsHost, Catch, type ExceptionFilter, HttpException, Inject, Logger } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { OutboxError, type OutboxErrorCode } from '../errors';

/** What a caller can do something about. Everything else is for the log only. */
const STATUS: Partial<Record<OutboxErrorCode, number>> = {
  OUTBOX_OPERATION_INVALID: 400,
  OUTBOX_OPTIONS_INVALID: 400,
  OUTBOX_LANES_BUSY: 503,
};

/** Answers failures, without a word about the inside. */
@Catch()
export class Failures implements ExceptionFilter {
  private readonly logger = new Logger('OutboxHttp');

  constructor(@Inject(HttpAdapterHost) private readonly host: HttpAdapterHost) {}

  catch(error: unknown, host: ArgumentsHost): void {
    const { status, body } = this.answerTo(error);
    this.host.httpAdapter.reply(host.switchToHttp().getResponse(), body, status);
  }

  private answerTo(error: unknown): { status: number; body: object } {
    if (error instanceof HttpException) {
      const answer = error.getResponse();
      return { status: error.getStatus(), body: typeof answer === 'string' ? { statusCode: error.getStatus(), message: answer } : answer };
    }
    const status = error instanceof OutboxError ? STATUS[error.code] : undefined;
    if (error instanceof OutboxError && status !== undefined) return { status, body: { statusCode: status, code: error.code, message: error.message } };
    this.logger.error(error instanceof Error ? (error.stack ?? error.message) : String(error));
    return { status: 500, body: { statusCode: 500, message: 'Internal Server Error' } };
  }
}
