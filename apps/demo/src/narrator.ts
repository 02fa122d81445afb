import type { Check, Checklist } from './checklist.js';
import type { Paint } from './paint.js';
import { renderTable } from './table.js';

const WIDTH = 92;
const INDENT = '   ';

/** Tells the story: chapters, sentences, things seen, checks. */
export class Narrator {
  private chapters = 0;

  constructor(
    private readonly write: (text: string) => void,
    private readonly paint: Paint,
  ) {}

  title(text: string): void {
    this.line();
    this.line(this.paint.bold(text));
    this.line(this.paint.dim('═'.repeat(text.length)));
  }

  chapter(text: string): void {
    this.chapters += 1;
    this.line();
    this.line(this.paint.bold(this.paint.cyan(`${this.chapters}. ${text}`)));
  }

  say(text: string): void {
    for (const line of wrap(text, WIDTH - INDENT.length)) this.line(INDENT + line);
  }

  /** Something that can be looked at, such as a row or a request. */
  show(label: string, value: string): void {
    this.line(`${INDENT}  ${this.paint.dim(`${label.padEnd(9)} │`)} ${value}`);
  }

  checked({ claim, expected, seen, holds }: Check): void {
    const mark = holds ? this.paint.green('✓') : this.paint.red('✗');
    this.line(`${INDENT}${mark} ${claim}: ${holds ? seen : this.paint.red(`${seen}, and it should be ${expected}`)}`);
  }

  /** The table of all checks, and the verdict. */
  conclude(checklist: Checklist, milliseconds: number): void {
    this.line();
    this.line(renderTable(checklist.checks, this.paint));
    this.line();
    const took = `${(milliseconds / 1000).toFixed(1)} s`;
    if (checklist.allHold) this.line(this.paint.green(`All ${checklist.checks.length} claims hold. ${took}`));
    else this.line(this.paint.red(`${checklist.failures.length} of ${checklist.checks.length} claims do not hold. ${took}`));
  }

  line(text = ''): void {
    this.write(`${text}\n`);
  }
}

function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(/\s+/)) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else {
      line = line === '' ? word : `${line} ${word}`;
    }
  }
  return [...lines, line];
}
