// Asks the operations beside this page.

/** What went wrong, in words for the user. */
export class Refused extends Error {
  /** @override */
  name = 'Refused';
}

/** @param {string} path @param {Record<string, string | undefined>} [query] @returns {Promise<any>} */
export function get(path, query = {}) {
  const given = Object.entries(query).filter((pair) => pair[1] !== undefined && pair[1] !== '');
  const search = new URLSearchParams(/** @type {[string, string][]} */ (given)).toString();
  return ask(search === '' ? path : `${path}?${search}`, {});
}

/** @param {string} path @param {object} body @returns {Promise<any>} */
export function post(path, body) {
  return ask(path, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
}

/** @param {string} path @param {RequestInit} options */
async function ask(path, options) {
  const response = await fetch(path, { ...options, headers: { Accept: 'application/json', ...options.headers } }).catch(() => {
    throw new Refused('The server does not answer.');
  });
  const body = await response.json().catch(() => ({}));
  if (response.ok) return body;
  if (response.status === 401) throw new Refused('You are not signed in any more. Load the page again.');
  const { message } = body;
  throw new Refused([message ?? `It was refused (${response.status}).`].flat().join('; '));
}
