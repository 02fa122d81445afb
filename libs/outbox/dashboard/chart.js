// Lines over the last minutes, as SVG. Colours and strokes are in the style sheet.
import { age, brief, draw, make } from './dom.js';

const [WIDTH, HEIGHT] = [600, 160];
/** Points of two seconds: what is kept, and how many the chart has room for at first. */
const [KEPT, ROOM] = [150, 30];

/**
 * @param {HTMLElement} place
 * @param {readonly { name: string, kind: string, area?: boolean }[]} series
 */
export function chart(place, series) {
  /** @type {number[][]} */
  let points = [];

  /** The next values, one for each series. @param {readonly number[]} values */
  function add(values) {
    points = [...points, [...values]].slice(-KEPT);
    const top = nice(Math.max(1, ...points.flat()));
    const room = Math.max(ROOM, points.length);
    const x = (/** @type {number} */ index) => WIDTH - ((points.length - 1 - index) * WIDTH) / (room - 1);
    const y = (/** @type {number} */ value) => HEIGHT - 4 - (value / top) * (HEIGHT - 12);
    const lines = series.flatMap(({ kind, area }, which) => {
      const path = points.map((point, index) => `${index === 0 ? 'M' : 'L'}${x(index).toFixed(1)} ${y(point[which] ?? 0).toFixed(1)}`).join('');
      return [
        ...(area ? [draw('path', { class: `area ${kind}`, d: `${path}L${WIDTH} ${HEIGHT}L${x(0).toFixed(1)} ${HEIGHT}Z` })] : []),
        draw('path', { class: `line ${kind}`, d: path }),
      ];
    });
    const grid = [0, 0.5, 1].map((part) => draw('line', { class: 'grid', x1: 0, x2: WIDTH, y1: y(top * part), y2: y(top * part) }));
    const said = series.map(({ name }, which) => `${name} ${brief(points.at(-1)?.[which] ?? 0)}`).join(', ');
    place.replaceChildren(
      make('div', { class: 'plot' },
        draw('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': `Now: ${said}` }, ...grid, ...lines),
        make('span', { class: 'top quiet' }, brief(top)),
        make('span', { class: 'start quiet' }, `${age(room * 2000)} ago`),
      ),
      make('ul', { class: 'legend' }, ...series.map(({ name, kind }, which) => make('li', { class: kind }, `${name} `, make('b', {}, brief(points.at(-1)?.[which] ?? 0))))),
    );
  }

  return { add };
}

/** The next round number. @param {number} value */
function nice(value) {
  const step = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 5, 10].find((times) => times * step >= value) ?? 10) * step;
}
