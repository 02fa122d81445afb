// What waits, how fast it moves, and where: looked at every two seconds.
import { get } from './api.js';
import { chart } from './chart.js';
import { act } from './dialogs.js';
import { age, brief, byId, count, draw, make, table, time } from './dom.js';

const EVERY_MS = 2000;

/** @returns {() => Promise<void>} what looks at once */
export function startOverview() {
  const backlog = chart(byId('backlog-chart'), [{ name: 'waiting', kind: 'one', area: true }, { name: 'dead', kind: 'bad' }]);
  const rates = chart(byId('rates-chart'), [{ name: 'in', kind: 'two' }, { name: 'out', kind: 'one' }]);
  /** @type {{ head: string, waiting: number, at: number } | undefined} */
  let before;
  let paused = false;
  let shown = '';

  async function look() {
    const [stats, queue] = await Promise.all([get('stats'), get('queue', { since: before?.head })]);
    const now = performance.now();
    const waiting = stats.pending + stats.held + stats.dead;
    if (before) {
      // Out is what was sent or discarded: what came in and does not wait any more.
      const [seconds, added] = [(now - before.at) / 1000, queue.added ?? 0];
      rates.add([added / seconds, Math.max(0, added - (waiting - before.waiting)) / seconds]);
    }
    before = { head: queue.head, waiting, at: now };
    backlog.add([stats.pending + stats.held, stats.dead]);
    paused = stats.paused;
    showTiles(stats);
    // What has not changed keeps the focus and the scroll position.
    const next = JSON.stringify([stats.topics, stats.sampled, queue.lanes, queue.keys]);
    if (next === shown) return;
    shown = next;
    keepingFocus(() => {
      showTopics(stats, refresh);
      showLanes(queue);
      showKeys(queue, refresh);
    });
  }

  async function refresh() {
    try {
      await look();
      byId('trouble').hidden = true;
    } catch (error) {
      byId('state').textContent = 'no answer';
      byId('state').dataset.kind = 'bad';
      byId('trouble').textContent = error instanceof Error ? error.message : String(error);
      byId('trouble').hidden = false;
    }
  }

  byId('pause').addEventListener('click', async () => {
    if (await pauseOrResume(paused)) await refresh();
  });
  const again = async () => {
    if (!document.hidden) await refresh();
    setTimeout(again, EVERY_MS);
  };
  again();
  return refresh;
}

/** @param {any} stats */
function showTiles(stats) {
  for (const name of ['pending', 'held', 'dead']) {
    const place = byId(name);
    place.textContent = count(stats[name]);
    place.parentElement.classList.toggle('some', stats[name] > 0);
  }
  byId('oldest').textContent = age(stats.oldestAge);
  const someone = stats.dead > 0 || stats.topics.some((/** @type {any} */ topic) => topic.blockedKeys > 0 || topic.paused);
  byId('state').textContent = stats.paused ? 'paused' : someone ? 'needs an operator' : 'flowing';
  byId('state').dataset.kind = stats.paused ? 'bad' : someone ? 'warn' : 'good';
  byId('pause').textContent = stats.paused ? 'Resume all relays' : 'Pause all relays';
  byId('pause').hidden = false;
}

/** @param {any} stats @param {() => Promise<void>} refresh */
function showTopics({ topics, sampled }, refresh) {
  if (topics.length === 0) return byId('topics').replaceChildren(make('p', { class: 'empty' }, 'Nothing waits.'));
  const rows = topics.map((/** @type {any} */ topic) => [
    make('span', { class: 'name' }, topic.topic, topic.paused ? make('span', { class: 'badge', 'data-kind': 'bad' }, 'paused') : null),
    count(topic.pending),
    count(topic.held),
    count(topic.dead),
    count(topic.blockedKeys),
    make('button', { type: 'button', class: 'small', id: `topic ${topic.topic}`, 'aria-label': `${topic.paused ? 'Resume' : 'Pause'} ${topic.topic}`, click: async () => (await pauseOrResume(topic.paused, topic.topic)) && refresh() }, topic.paused ? 'Resume' : 'Pause'),
  ]);
  byId('topics').replaceChildren(
    table(['Topic', 'Pending', 'Held', 'Dead', 'Stopped keys', ''], rows),
    sampled ? make('p', { class: 'quiet' }, 'Pending is counted over the first 10,000 messages.') : '',
  );
}

/** @param {any} queue */
function showLanes({ lanes, laneCount }) {
  const by = new Map(lanes.map((/** @type {any} */ lane) => [lane.lane, lane]));
  const most = Math.max(1, ...lanes.map((/** @type {any} */ lane) => lane.pending + lane.held));
  const columns = Math.min(laneCount, 16);
  const cells = Array.from({ length: laneCount }, (_, lane) => {
    const { pending, held } = by.get(lane) ?? { pending: 0, held: 0 };
    const level = pending + held === 0 ? 0 : 1 + Math.min(3, Math.floor((4 * Math.log1p(pending + held)) / Math.log1p(most + 1)));
    const kind = held > 0 ? ' waits' : '';
    return draw('rect', { class: `lane level-${level}${kind}`, x: (lane % columns) * 20 + 1, y: Math.floor(lane / columns) * 20 + 1, width: 18, height: 18, rx: 4 },
      draw('title', {}, `lane ${lane}: ${pending} pending, ${held} held`));
  });
  const busy = lanes.length;
  const fullest = lanes.reduce((/** @type {any} */ most, /** @type {any} */ lane) => (most && most.pending + most.held >= lane.pending + lane.held ? most : lane), undefined);
  const text = fullest ? `${busy} of ${laneCount} lanes have messages; the fullest is ${fullest.lane} with ${brief(fullest.pending + fullest.held)}.` : `${laneCount} lanes, all empty.`;
  byId('lanes').replaceChildren(
    draw('svg', { class: 'lanes', viewBox: `0 0 ${columns * 20} ${Math.ceil(laneCount / columns) * 20}`, role: 'img', 'aria-label': text }, ...cells),
    make('p', { class: 'quiet' }, text),
  );
}

/** @param {any} queue @param {() => Promise<void>} refresh */
function showKeys({ keys, moreKeys }, refresh) {
  if (keys.length === 0) return byId('keys').replaceChildren(make('p', { class: 'empty' }, 'No key is held back.'));
  const rows = keys.map((/** @type {any} */ { topic, key, state, waiting, retryAt }) => [
    make('span', { class: 'name' }, topic),
    make('code', {}, key),
    make('span', { class: 'badge', 'data-kind': state === 'retry' ? 'warn' : 'bad' }, state),
    count(waiting),
    retryAt === null ? 'an operator' : time(retryAt),
    state === 'retry' ? '' : make('button', { type: 'button', class: 'small', id: `key ${topic} ${key}`, 'aria-label': `Release ${key} of ${topic}`, click: async () => {
      const what = { title: 'Let the key go on?', text: `${key} of ${topic}: its ${count(waiting)} messages are sent. One that was given up is passed by.`, yes: 'Release' };
      if (await act(what, 'keys/release', { topic, key }, ({ done }) => (done ? `${key} goes on.` : `${key} was not stopped.`))) await refresh();
    } }, 'Release'),
  ]);
  byId('keys').replaceChildren(table(['Topic', 'Key', 'State', 'Waiting', 'Waits for', ''], rows), moreKeys ? make('p', { class: 'quiet' }, 'These are the first 200.') : '');
}

/** @param {boolean} paused @param {string} [topic] */
function pauseOrResume(paused, topic) {
  const what = topic ?? 'all relays';
  return act(
    paused
      ? { title: `Resume ${what}?`, text: 'What waits is sent again, oldest first.', yes: 'Resume' }
      : { title: `Pause ${what}?`, text: 'Nothing of it is sent until it is resumed, restarts included. Messages are still written and wait.', yes: 'Pause', danger: true },
    paused ? 'resume' : 'pause',
    topic === undefined ? {} : { topic },
    () => (paused ? `Resumed: ${what}.` : `Paused: ${what}.`),
  );
}

/** What is drawn anew takes the focus back. @param {() => void} work */
function keepingFocus(work) {
  const id = document.activeElement?.id;
  work();
  if (id) document.getElementById(id)?.focus();
}
