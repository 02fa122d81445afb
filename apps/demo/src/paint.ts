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
  const with_ = (code: number) => (text: string) => (coloured ? `\u001b[${code}m${text}\u001b[0m` : text);
  return { bold: with_(1), dim: with_(2), green: with_(32), red: with_(31), cyan: with_(36) };
}
