// Changes to the relay and the store that some test must notice. Each is one fault that a hand might make.

const LIB = 'libs/outbox/src/';
const RELAY = ['test/relay/settlement.spec.ts', 'test/relay/relay.spec.ts', 'test/relay/relay-trouble.spec.ts'];
const STORE = ['test/store/store.spec.ts', 'test/store/settled.spec.ts'];
const LOCKS = ['test/store/claim-locks.spec.ts', 'test/store/store.spec.ts'];
const SIDES = ['test/relay/side-by-side.spec.ts'];
/** Reasons that more than one mutant has. */
const EDITED = 'a message that is written down as sent is dead only where somebody has edited the tables';
const IN_TURN = 'only sweepers use it: they then do their batches one after the other, and nobody waits for them';
const TAKEOVER = ['test/relay/takeover.spec.ts'];

/**
 * `only` narrows the tests by name; by default to PostgreSQL, and what needs no database. `equal` says why a mutant that
 * lives is no fault.
 * @typedef {{ name: string, file: string, from: string, to: string, tests: string[], only?: string, equal?: string }} Mutant
 */

/** @param {string} file @param {string[]} tests @param {[name: string, from: string, to: string, more?: Partial<Mutant>][]} changes @returns {Mutant[]} */
const of = (file, tests, changes) => changes.map(([name, from, to, more]) => ({ name, file: LIB + file, from, to, tests, ...more }));

/** @type {Mutant[]} */
export const mutants = [
  ...of('relay/settlement.ts', RELAY, [
    ['what is acknowledged behind an unanswered one counts as sent', `'acknowledged' && !isStopped`, `'acknowledged'`],
    ['each refusal of a key counts', `'refused' && !isStopped`, `'refused'`],
    ['one attempt more than maxAttempts', 'attempts >= policy.maxAttempts', 'attempts > policy.maxAttempts'],
    ['an attempt is not counted', 'message.attempts + 1', 'message.attempts'],
    ['a throwing onExhausted lets the key go on', '// Of the two mistakes, this one can be mended.\n    return true;', 'return false;'],
    ['a message of a missing topic does not wait', 'if (failure) waiting.push', 'if (!failure) waiting.push'],
    ['an unanswered message does not stop its key', 'stopped.add(orderKey(message));', "if (outcome?.status === 'refused') stopped.add(orderKey(message));"],
  ]),
  ...of('relay/backoff.ts', ['test/relay/settlement.spec.ts'], [
    ['the pause does not double', '* 2 ** Math.max(0, failures - 1)', ''],
    ['the pause has no cap', 'Math.min(retryDelay * 2 ** Math.max(0, failures - 1), maxRetryDelay)', 'retryDelay * 2 ** Math.max(0, failures - 1)'],
    ['the pause is not spread', ' * (0.75 + Math.random() * 0.25)', ''],
  ]),
  ...of('relay/relay-worker.ts', [...RELAY, ...TAKEOVER], [
    ['an old claim is published', 'if (begun - claim.takenAt > oldestClaimToPublish(this.host.options)) {', 'if (begun < 0) {'],
    ['a claim whose connection ended is settled', 'if (this.session !== claim.session) return this.lost(', 'if (begun < 0) return this.lost(', {
      equal: 'settling goes over the connection that ended, and fails: the check only says so earlier, without a statement',
    }],
    ['an outage is settled', 'if (unknown && isEmpty(settlement)) {', 'if (unknown && messages.length < 0) {'],
    ['an outage is tried again at once', 'if (this.failures > 0) await this.sleep(backoff(this.failures, this.host.options));\n      else if', 'if'],
    ['the broker is not asked again after an outage', 'this.brokerIsReached = false;\n    this.failed', 'this.failed'],
    ['a lost connection does not stop the send', 'this.publisher.abort();', ''],
    ['a failing publisher keeps the lanes', 'await claim.session.release();\n      this.failed', 'this.failed'],
    ['an outage keeps the lanes', 'await session.release();\n      this.brokerFailed', 'this.brokerFailed'],
    ['a failed settlement is forgotten', 'return this.lost(claim, error instanceof Error ? error : new Error(String(error)));', 'return true;'],
    ['an error in the loop ends it', "this.failed('database', error);\n      await this.closeSession();\n      return false;", 'throw error;'],
  ]),
  ...of('relay/worker-publisher.ts', [...RELAY, ...TAKEOVER], [
    ['it is sent again before the old publisher is closed', '    await this.closing;\n    const refusals', '    const refusals'],
    ['a hung publisher is not closed', 'await this.close();\n      throw', 'throw'],
    ['what follows a spoilt row is sent', 'stopped.add(orderKey(message));\n      refusals.set(message, { status: \'refused\', failure: { code: \'DEFECTIVE_ROW\'', 'refusals.set(message, { status: \'refused\', failure: { code: \'DEFECTIVE_ROW\''],
  ]),
  ...of('store/settle.ts', STORE, [
    ['a settlement of lanes that were lost is not noticed', 'removed !== all.length', 'removed > all.length'],
    ['no hold is made', 'await holdAll(sql, dialect, held);', ''],
    ['no hold is ended', 'await releaseHolds(sql, dialect, releasable', 'void (sql, dialect, releasable'],
    ['what was sent is not written down', 'await logSent(sql, dialect, sent);', ''],
    ['an attempt is not written down', 'retry_count = retry_count + 1', 'retry_count = retry_count'],
    ['a parked message keeps its status', 'status = 2, next_retry_at', 'status = 0, next_retry_at'],
    ['what is in its place already is moved', '].filter(({ message, behind }) => message.source !== behind);', '];', { equal: 'it is taken out and put back in the same place' }],
    ['followers stay where they are', '    ...waiters.followers,\n  ].filter', '  ].filter'],
    ['orphans stay where they are', 'const all = [...refs, ...orphans];', 'const all = [...refs]; void orphans;'],
    ['a hold that was renewed is ended', '.filter(([name]) => !renewed.has(name))', '.filter(([name]) => name !== null || renewed)'],
    ['a message without a key blocks', 'blocks && message.key !== null', 'blocks'],
    ['a key that is given up does not block', "state: 'blocked' as const", "state: 'retry' as const", { equal: 'the state is for operators to read; what blocks is the time, which is checked below' }],
    ['what waits with its topic goes behind its key', "message.source === 'key-hold' ? 'key-hold' : 'topic-hold';\n}\n\n/** The holds", "'key-hold';\n}\n\n/** The holds"],
    ['a dead message is not in the list of the dead', 'INSERT INTO ${dialect.tables.dead} (id, lane, topic, message_key) VALUES ` +\n          part.map(({ message }) => `(${message.id}', 'INSERT INTO ${dialect.tables.dead} (id, lane, topic, message_key) VALUES ` +\n          part.map(({ message }) => `(-${message.id}', { tests: ['test/operate/admin.spec.ts'] }],
    ['errors of any length', 'error.slice(0, MAX_ERROR_LENGTH)', 'error'],
  ]),
  ...of('store/hold.ts', STORE, [
    ['a hold ends though messages wait behind it', 'part.filter((place) => !waited.has(place)), part', 'part.filter((place) => waited !== undefined && place !== undefined), part'],
    ['a hold with messages behind it does not become due', 'SET retry_at = ${now} WHERE ${which.sql}', 'SET retry_at = retry_at WHERE ${which.sql}', {
      equal: 'a hold from which something was taken was due already: the new time only puts it behind others that are due',
    }],
    ['a blocked key is due at once', 'delayMs ?? NEVER_MS', 'delayMs ?? 0'],
    ['a hold is not renewed', '${replaceHold}`', '${replaceHold.slice(0, 0)}ON CONFLICT DO NOTHING`'],
  ]),
  ...of('store/read-heads.ts', STORE, [
    ['a held key is sent', "if (message.source !== 'key-hold' && isHeld('key-hold')) return 'key-hold';", ''],
    ['a topic that waits is sent', "if (message.source === 'pending' && isHeld('topic-hold')) return 'topic-hold';", ''],
    ['holds beyond the first of a lane are not seen', 'for (const name of (await readHolds(sql, dialect, places)).keys()) names.add(name);', 'void places; void readHolds;'],
    ['only what is pending waits behind its key', "message.source !== 'key-hold' && isHeld", "message.source === 'pending' && isHeld"],
  ]),
  ...of('store/refs.ts', [...STORE, 'test/store/claim-reads.spec.ts'], [
    ['a hold that is not due is released', 'holds.filter((hold) => hold.due)', 'holds.filter((hold) => hold.lane >= 0)'],
    ['messages behind a hold come in no order', 'ORDER BY h.id LIMIT', 'ORDER BY h.id DESC LIMIT'],
    ['a few full lanes are not read further', 'if (full.length === 0 || left < rows / 4) return [];', 'if (left < Infinity) return [];'],
    ['a crowded lane is not noticed', '=== holdsPerLane', '> holdsPerLane'],
  ]),
  ...of('store/lane-heads.ts', [...STORE, 'test/store/claim-reads.spec.ts'], [
    ['the lane is read from its end', 'ORDER BY p.lane, p.id LIMIT', 'ORDER BY p.lane DESC, p.id DESC LIMIT', { only: 'mysql' }],
  ]),
  ...of('store/transactional-claim-session.ts', [...STORE, ...LOCKS, ...SIDES], [
    ['lanes in one order', 'this.nextLane = ((lanes.at(-1) ?? -1) + 1) % count;', ''],
    ['the first lanes are not reached from the middle', 'if (lanes.length === 0 && first > 0) lanes = await', 'if (lanes.length < 0) lanes = await'],
    ['a settlement is not committed', 'await this.connection.commit();', 'await this.connection.rollback();'],
    ['a claim that failed keeps its transaction', 'await this.release();\n      throw error;', 'throw error;', { tests: TAKEOVER, equal: 'the worker closes the connection after any error, which ends the transaction too' }],
    ['names of lanes stay locked', 'await this.store.dialect.unlockLanes(this.connection, lanes);', 'void lanes;', { tests: LOCKS, only: 'old' }],
  ]),
  ...of('store/postgres.dialect.ts', [...LOCKS, ...TAKEOVER], [
    ['the lane is read from its end', 'WHERE p.lane = l.lane ORDER BY p.lane, p.id LIMIT', 'WHERE p.lane = l.lane ORDER BY p.lane DESC, p.id DESC LIMIT'],
    ['lanes are not locked', 'WHERE pg_try_advisory_xact_lock(${laneSpace}, c.lane) LIMIT', 'WHERE ${laneSpace} <> c.lane LIMIT'],
    ['a silent session keeps its lanes', "'idle_in_transaction_session_timeout', 'tcp_user_timeout', ", "'tcp_user_timeout', "],
    ['a host that reads nothing keeps its lanes', "'tcp_user_timeout', 'lock_timeout'", "'lock_timeout'", {
      equal: 'NOT KILLED FOR SURE: the relay must be frozen in the very moment in which a head of megabytes fills its socket, which the test reaches on a slow machine only',
    }],
    ['the session keeps its isolation level', "'SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED',", '', {
      equal: 'it is the default here; where it is not, the session is refused when it is opened, since its level is asserted',
    }],
  ]),
  ...of('store/postgres-insert.ts', STORE, [
    ['order buckets are not locked for one message', "'FROM locks')", "'')"],
    ['order buckets are not locked for many', '(SELECT COUNT(*) FROM locks) given, unnest', 'unnest'],
    ['many are written in any order', 'FROM input ORDER BY ord', 'FROM input ORDER BY message_id'],
  ]),
  ...of('operate/operator-connections.ts', ['test/operate/audit.spec.ts'], [
    ['the server ends the connection of a long act', 'connection.keepAwake();', '', { only: 'takes longer than .* mysql' }],
  ]),
  ...of('store/postgres-prepared.ts', ['test/store/prepared-statements.spec.ts'], [
    ['statements are prepared behind a pooler', 'if (!this.enabled) return', 'if (false) return'],
    ['nothing is prepared', 'if (!this.enabled) return', 'if (true) return'],
    ['a forgotten statement goes on being used', 'driverCode(error) === FORGOTTEN) this.stop()', 'driverCode(error) === FORGOTTEN) void 0'],
    ['loggers get no text', 'Object.setPrototypeOf(NamedText.prototype, String.prototype);', ''],
  ]),
  ...of('store/postgres-session.ts', ['test/store/prepared-statements.spec.ts'], [
    ['every session is taken for its own', 'greeted === Number(rows[0]?.id)', 'greeted > 0'],
  ]),
  ...of('store/mysql-insert.ts', STORE, [
    ['order buckets are not locked, statement by statement', 'ORDER BY bucket FOR UPDATE', 'ORDER BY bucket', { only: 'mysql' }],
    ['order buckets are not locked for one message', 'WHERE bucket = ${buckets[0]} FOR UPDATE', 'WHERE bucket = ${buckets[0]}', { only: 'mysql' }],
    ['order buckets are not locked in a block', "IN (${buckets.join(', ')}) FOR UPDATE; `", "IN (${buckets.join(', ')}); `", { only: 'mariadb' }],
    ['a missing bucket loses a message', 'if (result.affectedRows !== 1) throw', 'if (result.affectedRows > 1) throw', { only: 'mysql|the way in which' }],
    ['ids in steps of one', ' * @@SESSION.auto_increment_increment', '', { only: 'mysql' }],
  ]),
  ...of('store/mysql.dialect.ts', [...LOCKS, ...SIDES, ...TAKEOVER], [
    ['locked lanes are waited for', "forUpdateSkipLocked: skipLocked ? 'FOR UPDATE SKIP LOCKED' : 'FOR UPDATE',", "forUpdateSkipLocked: 'FOR UPDATE',", {
      only: 'mysql',
      equal: IN_TURN,
    }],
    ['lanes are waited for', '${lanes(limit)} FOR UPDATE SKIP LOCKED', '${lanes(limit)} FOR UPDATE', { only: 'mysql' }],
    ['lanes are not locked', '${lanes(limit)} FOR UPDATE SKIP LOCKED', '${lanes(limit)}', { only: 'mysql' }],
    ['a silent session keeps its lanes', "['wait_timeout', 'net_write_timeout'", "['net_write_timeout'", { only: 'mysql' }],
    ['a host that reads nothing keeps its lanes', "'wait_timeout', 'net_write_timeout', ", "'wait_timeout', ", { only: 'mysql' }],
    ['the session keeps REPEATABLE READ', "'SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED',", '', { only: 'mysql' }],
    ['rows are deleted by a scan', ' STRAIGHT_JOIN ${tables[table]} t ` +\n          `FORCE INDEX (PRIMARY) ON', ' JOIN ${tables[table]} t ` +\n          `ON', { only: 'mysql', tests: ['test/store/claim-reads.spec.ts', ...LOCKS] }],
  ]),
  ...of('store/sweep.ts', ['test/store/settled.spec.ts', ...LOCKS], [
    ['what is dead is deleted as sent', "ids.map((id) => [id]), 't.status = 0')", "ids.map((id) => [id]))", { equal: EDITED }],
    ['what is dead is marked as sent', "WHERE ${idIn('t.id', ids)} AND t.status = 0`", "WHERE ${idIn('t.id', ids)}`", { equal: EDITED }],
    ['what was swept is swept again', "deleteByKey('settled', taken.map((batch) => [batch]))", "deleteByKey('settled', [])"],
    ['a batch that was not swept is forgotten', "deleteByKey('settled', taken.map((batch) => [batch]))", "deleteByKey('settled', waiting.map(({ batch }) => [batch]))"],
    ['all batches at once', 'index === 0 || characters <= CHARACTERS', 'index >= 0 || characters <= CHARACTERS'],
    ['sweepers wait for one another', 'LIMIT ${BATCHES} ${forUpdateSkipLocked}', 'LIMIT ${BATCHES} ${forUpdateSkipLocked.slice(0, 10)}', { equal: IN_TURN }],
  ]),
  ...of('store/message-state.ts', ['test/store/settled.spec.ts'], [
    ['what is in no state is sent', "places.get(id) ?? 'lost'", "places.get(id) ?? 'sent'"],
    ['what is held is not looked for', "for (const id of await readHeld(sql, dialect, rest)) places.set(id, 'held');", 'void readHeld;'],
    ['the sweeper is not believed', 'still.map(({ id }) => id)', 'still.map(({ id }) => id).slice(1)'],
  ]),
];
