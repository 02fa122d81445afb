import type { Sql } from '../../store/dialect';
import { topicsReport } from '../../store/look';
import type { OutboxStore } from '../../store/outbox-store';
import type { DatabaseClock } from './database-clock';
import { INSTRUMENTS, type Labels } from './instruments';
import type { Reading } from './outbox-metrics';

/** How long an answer waits for the database, in ms: less than the 10 s that Prometheus waits. */
const PATIENCE = 5000;
/** The tables are read again after so many times what that has taken: it is never more than a tenth of the time. */
const REST = 10;

/** What the tables say, read when somebody asks. */
export class TableReadings {
  private running: Promise<readonly Reading[] | undefined> | undefined;
  private last: readonly Reading[] | undefined;
  private restUntil = 0;
  /** Topics that have had something: their series go to 0 and do not vanish. */
  private readonly seen = new Set<string>();

  constructor(
    private readonly sql: Sql,
    private readonly store: OutboxStore,
    private readonly clock: DatabaseClock,
  ) {}

  /** `undefined` when the database does not answer. Never rejects. */
  async read(): Promise<readonly Reading[] | undefined> {
    if (performance.now() < this.restUntil) return this.last;
    this.running ??= this.take().finally(() => {
      this.running = undefined;
    });
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<undefined>((resolve) => {
      timer = setTimeout(resolve, PATIENCE, undefined);
    });
    try {
      return await Promise.race([this.running, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  private async take(): Promise<readonly Reading[] | undefined> {
    const begun = performance.now();
    try {
      this.last = [...(await this.backlog()), ...(await this.sizes())];
      await this.clock.ask(this.sql);
    } catch {
      // What it says is in `outbox_database_up`, and in the log of whoever needs the database.
      this.last = undefined;
    }
    const ended = performance.now();
    this.restUntil = ended + REST * (ended - begun);
    return this.last;
  }

  private async backlog(): Promise<Reading[]> {
    const { sql, store } = this;
    const { pending, oldestAge } = await store.backlog(sql);
    const { topics, paused } = await topicsReport(sql, store);
    const counted = topics.reduce((sum, topic) => sum + topic.pending, 0);
    const byTopic = new Map(topics.map((topic) => [topic.topic, topic]));
    for (const { topic } of topics) this.seen.add(topic);
    const reading = (name: keyof typeof INSTRUMENTS, value: number, labels: Labels = {}): Reading => ({ instrument: INSTRUMENTS[name], labels, value });
    return [
      reading('oldestAge', (oldestAge ?? 0) / 1000),
      reading('paused', Number(paused)),
      ...[...this.seen].flatMap((topic) => {
        const stats = byTopic.get(topic) ?? { pending: 0, held: 0, dead: 0, blockedKeys: 0, paused: false };
        const labels = { topic };
        return [
          reading('pending', counted === 0 ? 0 : Math.round((stats.pending / counted) * Math.max(pending, counted)), labels),
          reading('held', stats.held, labels),
          reading('dead', stats.dead, labels),
          reading('blockedKeys', stats.blockedKeys, labels),
          reading('topicPaused', Number(stats.paused), labels),
        ];
      }),
    ];
  }

  private async sizes(): Promise<Reading[]> {
    const { tableSizes } = this.store.dialect;
    if (tableSizes === null) return [];
    const rows = (await this.sql.query(tableSizes)) as { name: string; n: number | string; bytes: number | string }[];
    return rows.flatMap(({ name, n, bytes }) => [
      { instrument: INSTRUMENTS.tableRows, labels: { table: name }, value: Number(n) },
      { instrument: INSTRUMENTS.tableSize, labels: { table: name }, value: Number(bytes) },
    ]);
  }
}
