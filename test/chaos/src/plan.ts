import { Random, seedOf } from './random.js';

/** The faults that there are, and how often each is drawn. */
export const FAULT_WEIGHTS = {
  /** SIGKILL of a relay; a new one takes its place. */
  'relay-kill': 4,
  /** SIGSTOP of a relay, then SIGCONT. */
  'relay-freeze': 3,
  /** The database ends the sessions of a relay. */
  'relay-sessions': 3,
  /** The database ends everybody's sessions. */
  'all-sessions': 1,
  /** SIGKILL of the database, then a start on the same data. */
  'database-restart': 1,
  /** A relay's connections to the database are broken off, and refused for a while. */
  'database-cut': 2,
  /** A relay's connections to the database carry nothing for a while, and break or recover. */
  'database-stall': 2,
  /** The database gets what a relay says, and its answers do not arrive. */
  'database-unheard': 1.5,
  /** A relay's host dies: the relay is gone, and the database hears nothing of it. */
  'host-loss': 1,
  /** What a relay and the database say to each other comes late. */
  'database-slow': 2,
  /** SIGSTOP of the broker, then SIGCONT. */
  'broker-freeze': 2,
  /** SIGKILL of the broker, then a start on the same data. */
  'broker-restart': 0.25,
  'broker-cut': 2,
  'broker-stall': 2,
  'broker-unheard': 2,
  'broker-slow': 2,
  /** SIGKILL of a writer; a new one takes its place. */
  'writer-kill': 1,
  /** SIGKILL of a consumer; a new one takes its place. */
  'consumer-kill': 1,
  /** Some messages that are larger than their topic takes. */
  poison: 2,
  /** A topic takes only small messages for a while. */
  'topic-limit': 1,
  /** The relays may not write to a topic for a while. */
  'topic-permission': 1,
} as const;

export type FaultKind = keyof typeof FAULT_WEIGHTS;

export const FAULT_KINDS = Object.keys(FAULT_WEIGHTS) as FaultKind[];

export interface PlannedFault {
  readonly kind: FaultKind;
  /** Milliseconds after the start. */
  readonly at: number;
  /** How long it lasts, where it lasts. */
  readonly forMs: number;
  /** Which one of several it hits: a number to be taken modulo their count. */
  readonly target: number;
}

/** Draws about one fault for each second. */
export function planFaults(seed: number, seconds: number, kinds: readonly FaultKind[] = FAULT_KINDS): PlannedFault[] {
  const random = new Random(seedOf(seed, 'faults'));
  const weights = Object.fromEntries(kinds.map((kind) => [kind, FAULT_WEIGHTS[kind]])) as Record<FaultKind, number>;
  const faults: PlannedFault[] = [];
  for (let at = 700; at < seconds * 1000; at += random.int(600, 1400)) {
    const kind = random.weighted(weights);
    faults.push({ kind, at, forMs: duration(kind, random), target: random.int(0, 999) });
  }
  return faults;
}

/** Mostly shorter than the relay's timeouts, at times longer than all of them. */
function duration(kind: FaultKind, random: Random): number {
  const long = random.chance(0.15);
  const milliseconds = long ? random.int(4000, 14_000) : random.int(100, 3000);
  // While the broker stands still, so does everything else.
  return /^(broker|topic)-/.test(kind) ? Math.min(milliseconds, 6000) : milliseconds;
}
