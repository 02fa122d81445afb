/** What a run of the chaos ground has recorded. The checker looks at nothing else. */
export interface History {
  /** Events whose transaction committed, as the ledger, which was written in that transaction, has them. */
  readonly committed: readonly CommittedEvent[];
  /** Events of attempts that were rolled back, in whole or to a savepoint, as the writers tell. */
  readonly rolledBack: readonly string[];
  /** Events that were given up and lie where an operator sees them. */
  readonly parked: readonly string[];
  /** Every record of every topic, in the order of each partition. */
  readonly records: readonly TopicRecord[];
  /** One for each time that a consumer's transaction for an event committed. */
  readonly effects: readonly Effect[];
  readonly faults: readonly FaultRecord[];
  readonly figures?: Figures;
}

/** What the processes measured, and what it is held against. */
export interface Figures {
  readonly processes: readonly ProcessFigures[];
  /** How many processes were killed. */
  readonly kills: { readonly relay: number; readonly consumer: number };
  readonly tables: TableFigures;
}

export interface ProcessFigures {
  /** Such as `relay-0.2`. */
  readonly process: string;
  /** Whether these are all of its figures, taken when everything had arrived; else counters only. */
  readonly isWhole: boolean;
  /** Else it was killed, and these are its last words. */
  readonly survived: boolean;
  readonly series: readonly Series[];
}

export interface Series {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Rows, by topic or by consumer. */
export interface TableFigures {
  readonly pending: Readonly<Record<string, number>>;
  readonly held: Readonly<Record<string, number>>;
  readonly dead: Readonly<Record<string, number>>;
  /** `null` when sent messages do not stay in the log. */
  readonly sent: Readonly<Record<string, number>> | null;
  readonly consumed: Readonly<Record<string, number>>;
}

export interface CommittedEvent {
  readonly eventId: string;
  readonly topic: string;
  /** `null`: the event has no key, and so no order. */
  readonly key: string | null;
  /**
   * Place in the commit order of its key: a counter that the transaction incremented under the key's row lock, so it
   * is exact. `null` when the transaction took no such lock.
   */
  readonly seq: number | null;
  /** Without a place: when its commit began and had ended, by one clock. Absent when the writer did not live to tell. */
  readonly commit?: CommitInterval | undefined;
}

/** Milliseconds of the machine's monotonic clock. The commit happened somewhere between. */
export interface CommitInterval {
  readonly begun: number;
  readonly ended: number;
}

export interface TopicRecord {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
  readonly messageId: string | null;
  /** From the record's value; `null` when there is none to be read. */
  readonly eventId: string | null;
  readonly key: string | null;
  /** Value and headers: what all copies of a message must share. */
  readonly fingerprint: string;
}

export interface Effect {
  readonly consumer: string;
  readonly eventId: string;
}

export interface FaultRecord {
  readonly kind: string;
  readonly target: string;
  /** Milliseconds since the start of the run. */
  readonly at: number;
  readonly forMs: number;
}
