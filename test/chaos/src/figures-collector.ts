import { setTimeout as sleep } from 'node:timers/promises';
import type { ChildPlace } from './child.js';
import type { ChildMessage } from './child-config.js';
import type { ChaosDatabase } from './database.js';
import { wrongFigures } from './figures.js';
import type { Ground } from './faults.js';
import type { Figures, ProcessFigures } from './history.js';

/** Tables are read again after ten times what that takes, and the sweeper comes after some seconds. */
const PATIENCE_MS = 30_000;

/** Collects what the processes of a run tell of their metrics. */
export class FiguresCollector {
  private readonly told = new Map<string, ProcessFigures>();

  /** The last word of a process counts. Writers say it when they end, the others when they are asked. */
  add({ process, isWhole, series }: Extract<ChildMessage, { type: 'figures' }>): void {
    this.told.set(process, { process, isWhole, series, survived: false });
  }

  /** Asks those who live, until what they say of the tables is true or time is over. */
  async collect({ relays, writers, consumers, database }: Ground, keepsSent: boolean): Promise<Figures> {
    const deadline = Date.now() + PATIENCE_MS;
    for (;;) {
      for (const place of [...relays, ...consumers]) place.send({ type: 'tellFigures' });
      await sleep(500);
      const figures = await this.figures([...relays, ...writers, ...consumers], database, keepsSent);
      const asked = new Set([...relays, ...consumers].map(({ process }) => process));
      const isComplete = figures.processes.filter(({ process, isWhole }) => isWhole && asked.has(process)).length === asked.size;
      const isSettled = isComplete && (await database.unswept()) === 0;
      if ((isSettled && onlyTables(figures).length === 0) || Date.now() > deadline) return figures;
    }
  }

  private async figures(places: readonly ChildPlace[], database: ChaosDatabase, keepsSent: boolean): Promise<Figures> {
    const last = new Set(places.map(({ process }) => process));
    const kills = (role: string): number => places.filter(({ name }) => name.startsWith(role)).reduce((total, { killed }) => total + killed, 0);
    const { sent, ...tables } = await database.figures();
    return {
      processes: [...this.told.values()].map((one) => ({ ...one, survived: last.has(one.process) })),
      kills: { relay: kills('relay'), consumer: kills('consumer') },
      tables: { ...tables, sent: keepsSent ? sent : null },
    };
  }
}

function onlyTables(figures: Figures): string[] {
  return wrongFigures({ committed: [], rolledBack: [], parked: [], records: [], effects: [], faults: [], figures }).filter((finding) => / says \d+ (pending|held|dead) |cannot be read/.test(finding));
}
