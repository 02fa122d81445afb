import type { Figures, History, ProcessFigures } from './history.js';

/** What a relay may have had in hand when it was killed: a batch for each worker. */
const RELAY_IN_HAND = 120;
/** So may a writer, transactions of a dozen events, and a consumer, a message for each partition. */
const WRITER_IN_HAND = 48;
const CONSUMER_IN_HAND = 18;

/** Faults in which a writer's COMMIT may go unanswered. */
const UNANSWERED_COMMITS: ReadonlySet<string> = new Set(['all-sessions', 'database-restart']);

/** Where the metrics disagree with the tables and the topics, a sentence each. */
export function wrongFigures(history: History): string[] {
  const { figures } = history;
  if (!figures) return [];
  return [...gauges(figures), ...emitted(history, figures), ...relayed(history, figures), ...consumed(figures)].map((finding) => `figure: ${finding}`);
}

/** A gauge of the tables is the tables, in every process that is there at the end. */
function gauges({ processes, tables }: Figures): string[] {
  const findings: string[] = [];
  for (const one of processes.filter(({ isWhole }) => isWhole)) {
    for (const state of ['pending', 'held', 'dead'] as const) {
      const name = `outbox_messages_${state}`;
      const topics = new Set([...Object.keys(tables[state]), ...one.series.flatMap((series) => (series.name === name ? (series.labels['topic'] ?? '') : []))]);
      for (const topic of topics) {
        const [said, there] = [sum([one], name, { topic }), tables[state][topic] ?? 0];
        if (said !== there) findings.push(`${one.process} says ${said} ${state} of ${topic}, and ${there} are`);
      }
    }
    if (sum([one], 'outbox_database_up') !== 1) findings.push(`${one.process} says that the tables cannot be read`);
    if (sum([one], 'outbox_messages_lost') !== 0) findings.push(`${one.process} says that messages are lost`);
  }
  return findings;
}

/** What a writer has counted has committed; and all of that, where no COMMIT went unanswered. */
function emitted({ committed, faults }: History, { processes }: Figures): string[] {
  const isAnswered = !faults.some(({ kind }) => UNANSWERED_COMMITS.has(kind));
  return processes.flatMap((one) => {
    if (!one.process.startsWith('writer')) return [];
    const said = sum([one], 'outbox_messages_emitted_total');
    const there = committed.filter(({ eventId }) => eventId.startsWith(`${one.process}-`)).length;
    const unsaid = isAnswered ? (one.survived ? 0 : WRITER_IN_HAND) : Number.POSITIVE_INFINITY;
    return said > there || there - said > unsaid ? [`${one.process} says ${said} emitted, and ${there} have committed`] : [];
  });
}

function relayed({ committed, parked, records }: History, { processes, tables, kills }: Figures): string[] {
  const findings: string[] = [];
  const dead = new Set(parked);
  const sent = committed.filter(({ eventId }) => !dead.has(eventId));
  const of = (items: readonly { readonly topic: string }[], topic: string): number => items.filter((item) => item.topic === topic).length;
  const inHand = kills.relay * RELAY_IN_HAND;
  for (const topic of new Set(committed.map((event) => event.topic))) {
    const published = sum(processes, 'outbox_messages_published_total', { topic });
    if (published > of(sent, topic)) findings.push(`${published} published to ${topic}, and ${of(sent, topic)} were sent`);
    if (published > of(records, topic)) findings.push(`${published} published to ${topic}, and ${of(records, topic)} are there`);
    if (tables.sent && (tables.sent[topic] ?? 0) !== of(sent, topic)) findings.push(`the log has ${tables.sent[topic] ?? 0} sent of ${topic}, and ${of(sent, topic)} were`);
    const [given, there] = [sum(processes, 'outbox_messages_parked_total', { topic }), tables.dead[topic] ?? 0];
    if (given > there) findings.push(`${given} parked of ${topic}, and ${there} are dead`);
  }
  for (const one of processes) {
    const [refused, retried, parkedBy] = ['refused', 'retried', 'parked'].map((name) => sum([one], `outbox_messages_${name}_total`));
    if (refused !== (retried ?? 0) + (parkedBy ?? 0)) findings.push(`${one.process} says ${refused} refused, ${retried} retried and ${parkedBy} parked`);
  }
  const published = sum(processes, 'outbox_messages_published_total');
  const lost = sum(processes, 'outbox_lanes_lost_messages_total');
  const unanswered = sum(processes, 'outbox_messages_unanswered_total');
  if (sent.length - published - lost > inHand) findings.push(`${sent.length} were sent, of which ${published} are counted, ${lost} with lost lanes`);
  if (records.length - published - lost - unanswered > inHand) {
    findings.push(`${records.length} records, of which ${published} are counted, ${lost} with lost lanes, ${unanswered} without an answer`);
  }
  return findings;
}

/** What a consumer has counted as handled is recorded; what is not counted was a COMMIT without an answer, a failure. */
function consumed({ processes, tables, kills }: Figures): string[] {
  return Object.entries(tables.consumed).flatMap(([consumer, there]) => {
    const said = sum(processes, 'outbox_consumer_messages_total', { consumer, outcome: 'handled' });
    const failures = sum(processes, 'outbox_consumer_failures_total', { consumer });
    const isWrong = said > there || there - said > failures + kills.consumer * CONSUMER_IN_HAND;
    return isWrong ? [`${consumer} says ${said} handled and ${failures} failures, and ${there} are recorded`] : [];
  });
}

function sum(processes: readonly ProcessFigures[], name: string, labels: Readonly<Record<string, string>> = {}): number {
  return processes
    .flatMap(({ series }) => series)
    .filter((series) => series.name === name && Object.entries(labels).every(([label, text]) => series.labels[label] === text))
    .reduce((total, { value }) => total + value, 0);
}
