import type { PublishRecord } from '../publisher';

/**
 * What happens to a record that is published: the broker refuses it; it is lost on the way, without an answer; or it
 * is stored and only the answer is lost.
 */
export type InMemoryFaultEffect = 'refused' | 'lost' | 'answer-lost';

/** Decides for each record that is published; `undefined` lets it pass. */
export type InMemoryFault = (record: PublishRecord) => InMemoryFaultEffect | undefined;

/** The faults that are in force at an in-memory broker. */
export class Faults {
  private faults: InMemoryFault[] = [];
  private refusedIds = new Set<string>();
  private answersToLose = 0;
  private down = false;

  get outage(): boolean {
    return this.down;
  }

  fail(fault: 'outage' | InMemoryFault): void {
    if (fault === 'outage') this.down = true;
    else this.faults.push(fault);
  }

  refuse(messageIds: readonly string[]): void {
    for (const id of messageIds) this.refusedIds.add(id);
  }

  loseAnswers(count: number): void {
    this.answersToLose += count;
  }

  heal(): void {
    this.faults = [];
    this.refusedIds = new Set();
    this.answersToLose = 0;
    this.down = false;
  }

  /** The rule for the batch that is published now. */
  forBatch(): InMemoryFault {
    const answerLost = this.answersToLose > 0;
    if (answerLost) this.answersToLose -= 1;
    return (record) => {
      if (this.down) return 'lost';
      if (this.refusedIds.has(record.messageId)) return 'refused';
      for (const fault of this.faults) {
        const effect = fault(record);
        if (effect !== undefined) return effect;
      }
      return answerLost ? 'answer-lost' : undefined;
    };
  }
}
