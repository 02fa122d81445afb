import { type PipeTransform, type Type as Class, ValidationPipe } from '@nestjs/common';
import { Type } from 'class-transformer';
import { ArrayMaxSize, ArrayNotEmpty, IsArray, IsBoolean, IsIn, IsInt, IsISO8601, IsObject, IsOptional, IsString, Matches, Max, MaxLength, Min, ValidateNested } from 'class-validator';
import { OperationInvalidError } from '../errors';
import type { Target } from '../operate/act-batches';
import type { AuditFilter } from '../store/audit';
import type { MessageFilter } from '../store/look';
import type { MessageState } from '../store/message-state';

/** Most messages that one request acts on: it is answered before a proxy gives it up. */
export const MOST_AT_ONCE = 10_000;
const STATES: readonly MessageState[] = ['pending', 'held', 'dead', 'sent', 'discarded', 'lost'];
/** PostgreSQL takes no text with a NUL. */
const NO_NUL = /^[^\0]+$/;

class FilterRequest {
  @IsOptional() @IsString() @MaxLength(249) @Matches(NO_NUL) topic?: string;
  @IsOptional() @IsString() @MaxLength(190) @Matches(NO_NUL) key?: string;
  @IsOptional() @IsString() @MaxLength(190) @Matches(NO_NUL) type?: string;
  @IsOptional() @IsIn(STATES) state?: MessageState;
  @IsOptional() @IsISO8601({ strict: true }) from?: string;
  @IsOptional() @IsISO8601({ strict: true }) to?: string;
}

class LimitedFilterRequest extends FilterRequest {
  @IsInt() @Min(1) @Max(MOST_AT_ONCE) limit!: number;
}

/** A page of messages. */
export class FindRequest extends FilterRequest {
  @IsOptional() @Matches(/^\d{1,18}$/) after?: string;
  @IsOptional() @Type(() => Number) @IsInt() @Min(1) @Max(1000) limit?: number;
}

/** A page of what operators have done. */
export class AuditRequest {
  @IsOptional() @IsString() @MaxLength(40) @Matches(NO_NUL) act?: string;
  @IsOptional() @IsString() @MaxLength(190) @Matches(NO_NUL) by?: string;
  @IsOptional() @IsString() @MaxLength(36) @Matches(NO_NUL) message?: string;
  @IsOptional() @IsISO8601({ strict: true }) from?: string;
  @IsOptional() @IsISO8601({ strict: true }) to?: string;
  @IsOptional() @Matches(/^\d{1,18}$/) before?: string;
  @IsOptional() @Type(() => Number) @IsInt() @Min(1) @Max(1000) limit?: number;
}

export class ShowRequest {
  @IsOptional() @IsIn(['true', 'false']) content?: string;
}

export class QueueRequest {
  @IsOptional() @Matches(/^\d{1,18}$/) since?: string;
}

class ReasonRequest {
  @IsString() @MaxLength(500) @Matches(/\S/, { message: 'reason must not be empty' }) @Matches(NO_NUL) reason!: string;
}

/** An act on messages: by `ids`, or all that a `filter` finds. */
export class MessagesRequest extends ReasonRequest {
  @IsOptional() @IsArray() @ArrayNotEmpty() @ArrayMaxSize(1000) @IsString({ each: true }) @MaxLength(36, { each: true }) ids?: string[];
  @IsOptional() @IsObject() @ValidateNested() @Type(() => LimitedFilterRequest) filter?: LimitedFilterRequest;
}

export class KeyRequest extends ReasonRequest {
  @IsString() @MaxLength(249) topic!: string;
  @IsString() @MaxLength(190) @Matches(NO_NUL) key!: string;
}

export class PauseRequest extends ReasonRequest {
  @IsOptional() @IsString() @MaxLength(249) topic?: string;
}

/** A page of dead letters. */
export class LettersRequest {
  @IsOptional() @Matches(/^\d{1,10}:\d{1,19}(,\d{1,10}:\d{1,19})*$/) after?: string;
  @IsOptional() @Type(() => Number) @IsInt() @Min(1) @Max(1000) limit?: number;
}

class PlaceRequest {
  @IsInt() @Min(0) partition!: number;
  @IsString() @Matches(/^\d{1,19}$/) offset!: string;
}

export class ReplayRequest extends ReasonRequest {
  @IsArray() @ArrayNotEmpty() @ArrayMaxSize(1000) @ValidateNested({ each: true }) @Type(() => PlaceRequest) places!: PlaceRequest[];
}

/** Ages in ms; what is left out goes by the rules of the module. */
export class PurgeRequest extends ReasonRequest {
  @IsOptional() @IsInt() @Min(0) sent?: number;
  @IsOptional() @IsInt() @Min(0) dead?: number;
  @IsOptional() @IsInt() @Min(0) consumed?: number;
  @IsOptional() @IsInt() @Min(0) failures?: number;
  @IsOptional() @IsInt() @Min(0) audit?: number;
  @IsOptional() @IsInt() @Min(0) sequences?: number;
  @IsOptional() @IsInt() @Min(0) history?: number;
  @IsOptional() @IsBoolean() archive?: boolean;
}

/** Takes what is of that class, and nothing with more in it. */
export function as(expectedType: Class<object>): PipeTransform {
  return new ValidationPipe({ expectedType, transform: true, whitelist: true, forbidNonWhitelisted: true });
}

export function filterOf({ topic, key, type, state, from, to }: FilterRequest): MessageFilter {
  return { ...given({ topic, key, type, state }), ...period({ from, to }) };
}

export function auditFilterOf({ act, by, message, from, to }: AuditRequest): AuditFilter {
  return { ...given({ act, by, message }), ...period({ from, to }) };
}

function period({ from, to }: { readonly from: string | undefined; readonly to: string | undefined }): { from?: Date; to?: Date } {
  return { ...(from === undefined ? {} : { from: new Date(from) }), ...(to === undefined ? {} : { to: new Date(to) }) };
}

/** Without what was not given. */
export function given<T extends object>(parts: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(parts).filter(([, value]) => value !== undefined)) as { [K in keyof T]?: Exclude<T[K], undefined> };
}

/** @throws OperationInvalidError */
export function targetOf({ ids, filter }: MessagesRequest): Target {
  if (ids && !filter) return ids;
  if (filter && !ids) return { ...filterOf(filter), limit: filter.limit };
  throw new OperationInvalidError('Say which messages: give ids, or a filter with a limit, and not both.');
}
