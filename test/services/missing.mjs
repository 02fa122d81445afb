// What to say when a server cannot be had.

/**
 * @param {{ variable: string }} service @param {string} reason
 * @returns {Error}
 */
export function missing({ variable }, reason) {
  return new Error([
    `${reason}. Ways out:`,
    `  1. give a running server: set ${variable}`,
    '  2. start Docker (with Compose): the server then comes from compose.yaml',
    '  3. install what is missing, then run this again',
  ].join('\n'));
}
