import { findLost } from '../../store/message-state';
import { type Check, fault, judge, type Trouble } from './finding';

/** Ids of the log that are looked through: relays go through all of it, again and again. */
const LOOKED_AT = 20_000n;
/** Ids of one look. */
const STRETCH = 2000;
/** Rows of the queue whose messages are looked up. */
const SAMPLE = 10_000;
const NAMED = 10;

export const messagesLost: Check = {
  id: 'messages.lost',
  async look({ sql, dialect }) {
    const { tables, idText } = dialect;
    const [lanes] = (await sql.query(`SELECT COUNT(*) AS n FROM ${tables.lane}`)) as { n: number | string }[];
    const [newest] = (await sql.query(`SELECT ${idText('MAX(m.id)')} AS id FROM ${tables.message} m`)) as { id: string | null }[];
    const head = BigInt(newest?.id ?? 0);
    let after: string | null = String(head > LOOKED_AT ? head - LOOKED_AT : 0n);
    const lost: string[] = [];
    while (after !== null) {
      // One that is being requeued at the moment is found elsewhere at the second look.
      const first = await findLost(sql, dialect, Number(lanes?.n), after, STRETCH);
      const second = first.lost.length === 0 ? first : await findLost(sql, dialect, Number(lanes?.n), after, STRETCH);
      lost.push(...first.lost.filter((id) => second.lost.includes(id)));
      after = first.next;
    }
    const named = `${lost.slice(0, NAMED).join(', ')}${lost.length > NAMED ? ', …' : ''}`;
    return judge(
      `none of the newest ${LOOKED_AT.toLocaleString('en')} ids`,
      lost.length === 0 ? [] : [fault(`${lost.length} messages wait nowhere, and nobody says that they were sent: ${named}`, 'Somebody has edited the tables. `npx outbox show` them, and emit again what is needed.')],
    );
  },
};

export const messagesStranded: Check = {
  id: 'messages.stranded',
  async look({ sql, dialect: { tables } }) {
    const count = async (query: string): Promise<number> => Number(((await sql.query(query)) as { n: number | string }[])[0]?.n);
    const troubles: Trouble[] = [];
    const advice = 'Somebody has edited the tables: no relay gets to these rows. Put back what they belong to, or delete them and emit again what is needed.';
    const lanes = await count(`SELECT COUNT(*) AS n FROM ${tables.lane}`);
    for (const table of [tables.pending, tables.held]) {
      const orphans = await count(`SELECT COUNT(*) AS n FROM (SELECT q.id AS id FROM ${table} q LIMIT ${SAMPLE}) q LEFT JOIN ${tables.message} m ON m.id = q.id WHERE m.id IS NULL`);
      if (orphans > 0) troubles.push(fault(`${orphans} rows of ${table} have no message in the log`, advice));
      const outside = await count(`SELECT COUNT(*) AS n FROM ${table} q WHERE q.lane >= ${lanes} OR q.lane < 0`);
      if (outside > 0) troubles.push(fault(`${outside} rows of ${table} are in lanes that do not exist`, advice));
    }
    const unheld = await count(
      `SELECT COUNT(*) AS n FROM (SELECT DISTINCT q.lane AS lane, q.topic AS topic, q.message_key AS message_key FROM ${tables.held} q LIMIT ${SAMPLE}) q
       LEFT JOIN ${tables.hold} h ON h.lane = q.lane AND h.topic = q.topic AND h.message_key = q.message_key WHERE h.lane IS NULL`,
    );
    if (unheld > 0) troubles.push(fault(`${unheld} keys have messages in ${tables.held} and no row in ${tables.hold}`, advice));
    return judge('every row of the queue is within reach of the relays', troubles);
  },
};
