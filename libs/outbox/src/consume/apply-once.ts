import { AlreadyAppliedError, OutboxOptionsError } from '../errors';

/** What TypeORM answers to an UPDATE or DELETE. */
export interface Change {
  readonly affected?: number | null;
}

/**
 * A change that happens once, in a consumer with `dedupe: 'state'`: its condition names the state that the event finds,
 * so that a repeat, also one at the same time, changes nothing. Then the transaction is rolled back and the message is
 * a duplicate.
 *
 * ```ts
 * await applyOnce(this.payments.update({ id: event.paymentId, status: 'authorised' }, { status: 'captured' }));
 * ```
 *
 * @returns how many rows were affected, at least one
 * @throws AlreadyAppliedError when none was; let it pass
 * @throws OutboxOptionsError when the driver does not say how many
 */
export async function applyOnce(change: PromiseLike<Change>): Promise<number> {
  const { affected } = await change;
  if (typeof affected !== 'number') {
    throw new OutboxOptionsError('applyOnce needs an UPDATE or DELETE of which the driver tells how many rows it affected.');
  }
  if (affected > 0) return affected;
  throw new AlreadyAppliedError(
    'applyOnce affected no row: the effect is there already. Only a consumer with dedupe: "state" takes that for a duplicate.',
  );
}
