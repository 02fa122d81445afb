// Asks before anything is done, and says what has come of it.
import { post, Refused } from './api.js';
import { byId } from './dom.js';

let timer = 0;

/** @param {string} text @param {boolean} [bad] */
export function say(text, bad = false) {
  const place = byId('said');
  place.textContent = text;
  place.dataset.bad = String(bad);
  place.hidden = false;
  clearTimeout(timer);
  timer = setTimeout(() => (place.hidden = true), 8000);
}

/**
 * Has the user confirm and give a reason.
 * @param {{ title: string, text: string, yes: string, danger?: boolean }} what
 * @returns {Promise<string | undefined>} the reason; nothing when it was cancelled
 */
function confirm({ title, text, yes, danger = false }) {
  const [dialog, reason, button] = [byId('ask'), byId('ask-reason'), byId('ask-yes')];
  byId('ask-title').textContent = title;
  byId('ask-text').textContent = text;
  button.textContent = yes;
  button.className = danger ? 'danger' : 'main';
  button.value = 'yes';
  reason.value = '';
  reason.setCustomValidity('');
  dialog.returnValue = '';
  dialog.showModal();
  reason.focus();
  return new Promise((resolve) => {
    dialog.addEventListener('close', () => resolve(dialog.returnValue === 'yes' ? reason.value.trim() : undefined), { once: true });
  });
}

export function prepareDialogs() {
  byId('ask-no').addEventListener('click', () => byId('ask').close());
  byId('life-close').addEventListener('click', () => byId('life').close());
  byId('ask-reason').addEventListener('input', ({ target }) => target.setCustomValidity(target.value.trim() === '' ? 'Say why.' : ''));
}

/**
 * Confirms an act, has it done and says how it went.
 * @param {{ title: string, text: string, yes: string, danger?: boolean }} what
 * @param {string} path @param {object} body
 * @param {(result: any) => string} tell
 * @returns {Promise<boolean>} whether it was done
 */
export async function act(what, path, body, tell) {
  const reason = await confirm(what);
  if (reason === undefined) return false;
  try {
    say(tell(await post(path, { ...body, reason })));
    return true;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    say(error.message, true);
    return false;
  }
}
