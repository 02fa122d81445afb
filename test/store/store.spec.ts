import { describe } from 'vitest';
import { DATABASES, SERVERS } from '../setup/databases';
import { describeClaims } from './acceptance/claims';
import { describeCommitOrder } from './acceptance/commit-order';
import { describeConsumed } from './acceptance/consumed';
import { describeRefusals } from './acceptance/refusals';
import { describeStore } from './acceptance/store';

describe.each(DATABASES)('store on %s', (database) => {
  describeStore(database);
});

describe.each(DATABASES)('a refused message on %s', (database) => {
  describeRefusals(database);
});

describe.each(DATABASES)('consumed messages on %s', (database) => {
  describeConsumed(database);
});

describe.each(SERVERS)('claims side by side on %s', (database) => {
  describeClaims(database);
});

describe.each(SERVERS)('commit order on %s', (database) => {
  describeCommitOrder(database);
});
