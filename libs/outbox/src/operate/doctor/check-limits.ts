import { MAX_STATEMENT_BYTES } from '../../store/outbox-store';
import { type Check, fault, judge, type Trouble, warning } from './finding';
import { settingsOf, show } from './settings';

/** In a text each quote becomes two characters. */
const ESCAPED = 2;

export const packetMysql: Check = {
  id: 'server.packet',
  async look(subject) {
    const { maxMessageBytes } = subject;
    const packet = Number((await settingsOf(subject, ['max_allowed_packet'])).get('max_allowed_packet'));
    const enough = ESCAPED * Math.max(MAX_STATEMENT_BYTES, maxMessageBytes);
    const set = `Set max_allowed_packet to ${enough} or more, and connect anew.`;
    const troubles: Trouble[] = [];
    if (packet < ESCAPED * maxMessageBytes) troubles.push(fault(`max_allowed_packet=${packet}: a message of ${maxMessageBytes} bytes, which the outbox takes, may not fit`, set));
    else if (packet < enough) troubles.push(warning(`max_allowed_packet=${packet}: a transaction that emits ${MAX_STATEMENT_BYTES} bytes at once may not fit`, set));
    return judge(`max_allowed_packet=${packet}`, troubles);
  },
};

/** Milliseconds of one, by setting. */
const IN_TRANSACTION = { idle_transaction_timeout: 1000, idle_write_transaction_timeout: 1000, transaction_timeout: 1 } as const;
const IDLE = { wait_timeout: 1000, idle_session_timeout: 1 } as const;
/** A pool that rests for a night is something else than one that is cut between two requests. */
const SHORT = 60_000;

export const serverTimeouts: Check = {
  id: 'server.timeouts',
  async look(subject) {
    const { sessionTimeout } = subject;
    const settings = await settingsOf(subject, [...Object.keys(IN_TRANSACTION), ...Object.keys(IDLE)]);
    const ms = (name: string, unit: number): number => Number(settings.get(name) ?? 0) * unit;
    const troubles: Trouble[] = [];
    for (const [name, unit] of Object.entries(IN_TRANSACTION)) {
      const timeout = ms(name, unit);
      if (timeout > 0 && timeout < sessionTimeout) troubles.push(fault(`${name} ends a transaction after ${timeout} ms`, `Set ${name}, for the relay's user, to 0 or to more than relay.sessionTimeout (${sessionTimeout} ms): relays lose their lanes while they publish.`));
    }
    for (const [name, unit] of Object.entries(IDLE)) {
      const timeout = ms(name, unit);
      if (timeout > 0 && timeout < SHORT) troubles.push(warning(`${name} ends a connection that rests for ${timeout} ms`, `Set ${name} to a minute or more: connections of pools are ended at rest, and requests find them so.`));
    }
    return judge(show(settings), troubles);
  },
};
