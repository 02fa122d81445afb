import type { Connection } from './connection';
import { holdAll, NEVER_MS, releaseHolds } from './hold';
import { TOPIC_HOLD_KEY } from './order-key';
import type { OutboxStore } from './outbox-store';
import { withLanes } from './with-lanes';

/*
 * Nothing that a relay reads is added: a paused lane is one that it does not lock, and a paused topic is held in each
 * lane like one that does not exist. Each lane is taken by itself, so that a relay that is busy with one holds up no
 * other; and because it is taken, nothing of it is on its way any more when it is paused.
 */

export async function pauseLanes(connection: Connection, store: OutboxStore, paused: boolean): Promise<void> {
  for (let lane = 0; lane < store.lanes; lane++) {
    await withLanes(connection, store, [lane], () =>
      connection.query(`UPDATE ${store.dialect.tables.lane} SET paused = ${paused ? 1 : 0} WHERE lane = ${lane}`),
    );
  }
}

export async function pauseTopic(connection: Connection, store: OutboxStore, topic: string): Promise<void> {
  const { bind, tables, nowPlusMs, updateByKey } = store.dialect;
  for (let lane = 0; lane < store.lanes; lane++) {
    await withLanes(connection, store, [lane], async () => {
      // Keys of the topic whose next attempt would come by itself.
      await connection.query(
        bind(`${updateByKey(tables.hold)} SET state = 'paused', retry_at = ${nowPlusMs} WHERE lane = ${lane} AND topic = ? AND state IN ('retry', 'topic')`),
        [NEVER_MS, topic],
      );
      await holdAll(connection, store.dialect, [{ place: { lane, topic, key: TOPIC_HOLD_KEY }, state: 'paused', delayMs: null }]);
    });
  }
}

export async function resumeTopic(connection: Connection, store: OutboxStore, topic: string): Promise<void> {
  const { bind, tables, updateByKey } = store.dialect;
  for (let lane = 0; lane < store.lanes; lane++) {
    await withLanes(connection, store, [lane], async () => {
      const rows = (await connection.query(
        bind(`SELECT message_key FROM ${tables.hold} WHERE lane = ${lane} AND topic = ? AND state = 'paused'`),
        [topic],
      )) as { message_key: string }[];
      if (rows.length === 0) return;
      await connection.query(
        bind(
          `${updateByKey(tables.hold)} SET state = CASE message_key WHEN '${TOPIC_HOLD_KEY}' THEN 'topic' ELSE 'retry' END
           WHERE lane = ${lane} AND topic = ? AND state = 'paused'`,
        ),
        [topic],
      );
      await releaseHolds(connection, store.dialect, rows.map(({ message_key: key }) => ({ lane, topic, key })));
    });
  }
}
