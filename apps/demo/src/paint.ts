/** Colours for a terminal that wants them; elsewhere the text stays plain. */
export interface Paint {
  bold(text: string): string;
  dim(text: string): string;
  green(text: string): string;
  red(text: string): string;
  cyan(text: string): string;
}

/** See https://no-color.org for the variable. */
export function paintFor(stream: { readonly isTTY?: boolean }, variables: NodeJS.ProcessEnv): Paint {
  const coloured = stream.isTTY === true && !variables['NO_COLOR'];
  const colour = (code: number) => (text: string) => (coloured ? `\u001b[${code}m${text}\u001b[0m` : text);
  return { bold: colour(1), dim: colour(2), green: colour(32), red: colour(31), cyan: colour(36) };
}
