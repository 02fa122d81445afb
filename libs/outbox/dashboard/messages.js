// Messages: found, chosen, requeued, discarded, replayed, and the life of one.
import { get } from './api.js';
import { act, say } from './dialogs.js';
import { byId, count, make, time } from './dom.js';

/** @typedef {'requeue' | 'replay' | 'discard'} Act */
/** @type {Record<Act, { states: string[], done: string, title: string, text: string, danger?: boolean }>} */
const ACTS = {
  requeue: { states: ['dead', 'discarded'], title: 'Requeue', done: 'Requeued', text: 'It is sent again, in its old place among what still waits of its key. What the key has sent meanwhile stands before it.' },
  replay: { states: ['sent'], title: 'Replay', done: 'Replayed', text: 'It is sent once more, behind what its key has sent since. Consumers that remember it skip it, others handle it.' },
  discard: { states: ['dead', 'held', 'pending'], title: 'Discard', done: 'Discarded', text: 'It is not sent. It stays in the log with your name and reason, and can be requeued.', danger: true },
};

/**
 * @param {{ canReadContent: boolean }} me
 * @param {() => Promise<void>} onChange called when something was done
 */
export function startMessages(me, onChange) {
  /** @type {Map<string, any>} */
  const shown = new Map();
  /** @type {Set<string>} */
  const chosen = new Set();
  /** @type {string | null} */
  let next = null;
  /** @type {Record<string, string>} */
  let filter = {};

  async function find() {
    filter = /** @type {any} */ (Object.fromEntries(new FormData(byId('search'))));
    shown.clear();
    chosen.clear();
    byId('list').replaceChildren();
    await page(undefined);
  }

  /** @param {string | undefined} after */
  async function page(after) {
    try {
      const { messages, next: behind } = await get('messages', { ...filter, after, limit: '50' });
      next = behind;
      for (const message of messages) shown.set(message.id, message);
      byId('list').append(...messages.map(entry));
    } catch (error) {
      next = null;
      say(error instanceof Error ? error.message : String(error), true);
    }
    byId('more').hidden = next === null;
    byId('nothing').hidden = shown.size > 0;
    byId('nothing').textContent = next === null ? `No ${filter.state || 'such'} messages.` : 'None among the first ones looked at; there are more.';
    update();
  }

  /** @param {any} message */
  function entry(message) {
    const { id, topic, key, type, state, attempts, lastError, createdAt } = message;
    const choose = ({ target }) => {
      if (target.checked) chosen.add(id);
      else chosen.delete(id);
      update();
    };
    return make('li', {},
      make('input', { type: 'checkbox', 'aria-label': `Choose message ${id}`, change: choose }),
      make('button', { type: 'button', class: 'open', click: () => life(message) },
        make('span', { class: 'line' }, make('span', { class: 'badge', 'data-kind': kindOf(state) }, state), make('b', {}, type), make('span', { class: 'quiet' }, `${topic} · ${key ?? 'no key'} · #${id}`)),
        lastError === null ? null : make('span', { class: 'error' }, lastError),
        make('span', { class: 'quiet' }, 'written ', time(createdAt), attempts > 0 ? `, ${count(attempts)} failed ${attempts === 1 ? 'attempt' : 'attempts'}` : ''),
      ));
  }

  function update() {
    byId('chosen').textContent = chosen.size === 0 ? '' : `${count(chosen.size)} chosen`;
    const boxes = [...byId('list').querySelectorAll('input')];
    byId('choose-all').checked = boxes.length > 0 && chosen.size === boxes.length;
    byId('choose-all').disabled = boxes.length === 0;
    for (const button of document.querySelectorAll('#messages [data-act]')) {
      const { states } = ACTS[/** @type {Act} */ (/** @type {HTMLElement} */ (button).dataset.act)];
      /** @type {HTMLButtonElement} */ (button).disabled = ![...chosen].some((id) => states.includes(shown.get(id)?.state));
    }
  }

  /** @param {Act} name @param {readonly string[]} ids @param {string} which */
  async function repair(name, ids, which) {
    const { title, text, danger, done } = ACTS[name];
    if (!(await act({ title: `${title} ${which}?`, text, yes: title, danger: danger ?? false }, `messages/${name}`, { ids }, (result) => told(done, result)))) return false;
    await Promise.all([find(), onChange()]);
    byId('messages').focus();
    return true;
  }

  /** @param {string} topic @param {string} key */
  async function block(topic, key) {
    const what = { title: 'Stop the key?', text: `${key} of ${topic}: its messages wait, those to come too, until somebody releases it.`, yes: 'Stop the key', danger: true };
    if (!(await act(what, 'keys/block', { topic, key }, () => `${key} is stopped.`))) return false;
    await onChange();
    return true;
  }

  /** @param {any} found */
  async function life(found) {
    /** @type {any} */
    let message;
    /** @type {any[]} */
    let acts;
    try {
      message = await get(`messages/${found.id}`, { content: me.canReadContent ? 'true' : undefined });
      ({ acts } = await get('audit', { message: found.id, limit: '20' }));
    } catch (error) {
      return say(error instanceof Error ? error.message : String(error), true);
    }
    const { id, messageId, topic, key, type, state, attempts, lastError, createdAt, sentAt, payload, headers } = message;
    const repairs = /** @type {Act[]} */ (Object.keys(ACTS)).filter((name) => ACTS[name].states.includes(state));
    const closing = (/** @type {() => Promise<boolean>} */ work) => async () => (await work()) && byId('life').close();
    byId('life-title').textContent = type;
    byId('life-body').replaceChildren(
      make('ol', { class: 'timeline' },
        make('li', {}, 'Written ', time(createdAt)),
        ...acts.toReversed().map(({ act: name, by, reason, beganAt }) => make('li', { class: 'warn' }, make('b', {}, name), ' by ', make('b', {}, by), ` – ${reason} – `, time(beganAt))),
        attempts > 0 ? make('li', { class: 'bad' }, `Refused ${count(attempts)} ${attempts === 1 ? 'time' : 'times'}`) : null,
        lastError === null ? null : make('li', { class: 'bad' }, make('span', { class: 'error' }, lastError)),
        make('li', { class: kindOf(state) }, make('b', {}, state), sentAt === null ? '' : ' ', sentAt === null ? null : time(sentAt))),
      make('dl', {}, ...Object.entries({ Topic: topic, Key: key ?? 'none', 'Message id': messageId, 'Place in the log': id }).flatMap(([name, value]) => [make('dt', {}, name), make('dd', {}, make('code', {}, value))])),
      ...(payload === undefined
        ? [make('p', { class: 'quiet' }, 'What it says is shown only to those who may read it.')]
        : [make('h3', {}, 'Headers'), make('pre', { tabindex: 0 }, pretty(headers) ?? 'none'), make('h3', {}, 'Payload'), make('pre', { tabindex: 0 }, pretty(payload) ?? 'none')]),
      make('div', { class: 'bar end' },
        key === null ? null : make('button', { type: 'button', click: closing(() => block(topic, key)) }, 'Stop its key'),
        ...repairs.map((name) => make('button', { type: 'button', class: ACTS[name].danger ? 'danger' : 'main', click: closing(() => repair(name, [id], `message ${id}`)) }, ACTS[name].title))),
    );
    byId('life').showModal();
  }

  byId('search').addEventListener('submit', (/** @type {Event} */ event) => {
    event.preventDefault();
    find();
  });
  byId('search').elements.state.addEventListener('change', find);
  byId('more').addEventListener('click', () => page(next ?? undefined));
  byId('choose-all').addEventListener('change', ({ target }) => {
    for (const box of byId('list').querySelectorAll('input')) box.checked = target.checked;
    chosen.clear();
    if (target.checked) for (const id of shown.keys()) chosen.add(id);
    update();
  });
  for (const button of /** @type {NodeListOf<HTMLButtonElement>} */ (document.querySelectorAll('#messages [data-act]'))) {
    button.addEventListener('click', () => repair(/** @type {Act} */ (button.dataset.act), [...chosen], chosen.size === 1 ? 'one message' : `${count(chosen.size)} messages`));
  }
  find();
}

/** @param {string} word @param {any} result */
function told(word, { done, notFound, skipped }) {
  const rest = [
    ...(notFound.length > 0 ? [`${count(notFound.length)} not in the log`] : []),
    ...(skipped.length > 0 ? [`${count(skipped.length)} passed by, being ${[...new Set(skipped.map((/** @type {any} */ one) => one.state))].join(' or ')}`] : []),
  ];
  return [`${word}: ${count(done)}.`, ...rest].join(' ');
}

/** @param {string} state */
function kindOf(state) {
  return { dead: 'bad', lost: 'bad', held: 'warn', sent: 'good' }[state] ?? 'calm';
}

/** @param {string | null} text */
function pretty(text) {
  if (text === null) return null;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
