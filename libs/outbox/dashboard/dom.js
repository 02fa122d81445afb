// Everything on the page is made here: text becomes text, never markup.

/** @param {string} id @returns {any} */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`The page has no #${id}.`);
  return found;
}

/**
 * An element with attributes, listeners (functions) and children; strings among them become text.
 * @param {string} name @param {Record<string, unknown>} [properties] @param {...(Node | string | null)} children
 */
export function make(name, properties = {}, ...children) {
  return fill(document.createElement(name), properties, children);
}

/** The same for SVG. @param {string} name @param {Record<string, unknown>} [properties] @param {...(Node | string | null)} children */
export function draw(name, properties = {}, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', name), properties, children);
}

/** @template {Element} E @param {E} element @param {Record<string, unknown>} properties @param {readonly (Node | string | null)[]} children */
function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (typeof value === 'function') element.addEventListener(name, /** @type {EventListener} */ (value));
    else if (value === true) element.setAttribute(name, '');
    else if (value !== false && value !== undefined) element.setAttribute(name, String(value));
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** A table; cells are text or elements. @param {readonly string[]} heads @param {readonly (Node | string)[][]} rows */
export function table(heads, rows) {
  return make(
    'table',
    {},
    make('thead', {}, make('tr', {}, ...heads.map((head) => make('th', { scope: 'col' }, head)))),
    make('tbody', {}, ...rows.map((row) => make('tr', {}, ...row.map((cell, index) => make('td', { 'data-head': heads[index] }, cell))))),
  );
}

const number = new Intl.NumberFormat('en');
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

/** @param {number} value */
export const count = (value) => number.format(value);

/** @param {number} value */
export const brief = (value) => (value >= 10_000 ? short.format(value) : number.format(Math.round(value * 10) / 10));

/** @param {number | null} ms */
export function age(ms) {
  if (ms === null) return '–';
  const seconds = Math.round(ms / 1000);
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86_400)} d`;
}

/** A point in time, and how long ago or ahead it is. @param {string} iso */
export function time(iso) {
  const at = new Date(iso);
  const away = Date.now() - at.getTime();
  return make('time', { datetime: iso, title: iso }, `${at.toLocaleString()} (${away >= 0 ? `${age(away)} ago` : `in ${age(-away)}`})`);
}
