import type { Output } from './print';

const WIDTH = 24;

/** Tells how far a long act is: on a terminal as a bar in one line that is written over, else line by line, with `--json` not at all. */
export class Progress {
  constructor(
    private readonly output: Output,
    private readonly silent: boolean,
  ) {}

  /** @param share from 0 to 1, where it is known how much there is to do */
  show(text: string, share?: number): void {
    if (this.silent) return;
    if (!this.output.rewrite) this.output.err(text);
    else this.output.rewrite(share === undefined ? text : `${bar(share)} ${text}`);
  }

  end(): void {
    if (!this.silent) this.output.rewrite?.('');
  }
}

function bar(share: number): string {
  const full = Math.round(Math.min(1, Math.max(0, share)) * WIDTH);
  return `[${'#'.repeat(full)}${'-'.repeat(WIDTH - full)}] ${String(Math.floor(share * 100)).padStart(3)} %`;
}
