import { faultCases } from './fault-cases';
import { lifecycleCases } from './lifecycle-cases';
import { recordCases } from './record-cases';
import { refusalCases } from './refusal-cases';
import type { AcceptanceCase, PublisherSetup } from './setup';

/**
 * What any publisher has to pass, as cases for the `it` of any test runner. They must run one after the other. A case
 * takes seconds, with a fault as long as the broker takes to come back: give each some minutes.
 *
 * @example
 * for (const { name, skipped, run } of publisherAcceptance(setup)) (skipped === null ? it : it.skip)(name, run);
 */
export function publisherAcceptance(setup: PublisherSetup): AcceptanceCase[] {
  return [...recordCases(setup), ...refusalCases(setup), ...lifecycleCases(setup), ...faultCases(setup)];
}
