import { type Check, fault, judge } from './finding';
import { settingsOf, show } from './settings';

/** How far ahead a row may be: hosts after a failover differ a little. */
const AHEAD = 60_000;
const NEWEST = 1000;

export const timeUtc: Check = {
  id: 'time.utc',
  async look(subject) {
    const { sql, dialect: { name, tables, now, epochMs } } = subject;
    const zone = name === 'sqlite' ? '' : show(await settingsOf(subject, ['time_zone', 'system_time_zone', 'TimeZone']));
    const [row] = (await sql.query(
      `SELECT MAX(${epochMs('n.created_at')}) - ${epochMs(now)} AS ahead FROM (SELECT m.created_at AS created_at FROM ${tables.message} m ORDER BY m.id DESC LIMIT ${NEWEST}) n`,
    )) as { ahead: number | string | null }[];
    const ahead = Number(row?.ahead ?? 0);
    return judge(
      `times are UTC, whatever the zone (${zone || 'none'})`,
      ahead > AHEAD ? [fault(`messages were created ${Math.round(ahead / 60_000)} minutes from now (${zone})`, 'Somebody writes local times into the log, or the clock was set back. The outbox writes UTC; let others do so too.')] : [],
    );
  },
};
