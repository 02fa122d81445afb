import type { Operator } from '../operate/audit';
import type { Source } from './data-source';
import type { OperatorTools } from './operator';
import { nameOfUser } from './name-of-user';
import { type Output, toJson } from './print';
import { Progress } from './progress';

/** What every command has. */
interface CommonTools {
  operator(given: { readonly reason: string; readonly by: string | undefined }): Operator;
  progress(text: string, share?: number): void;
}

/** What a command works with, and has to close. */
interface Closeable {
  close(): Promise<void>;
}

/** Prints a result: as JSON where that was asked for, else the text. */
export type Print = (result: unknown, text: string) => void;

type Work<T, O, A extends readonly unknown[]> = (tools: T & CommonTools, print: Print, options: O, ...args: A) => Promise<void>;

/** Makes the action of a command: its arguments come first, then its options. */
export type RunWith<T> = <O extends object, A extends readonly unknown[]>(work: Work<T, O, A>) => (...given: unknown[]) => Promise<void>;

/** For commands about the messages and tables of an outbox that is there. */
export type Run = RunWith<OperatorTools>;

export function runner<T extends Closeable>(open: (source: Source) => Promise<T>, settings: () => Source & { readonly json?: boolean }, output: Output): RunWith<T> {
  return (work) =>
    async (...given) => {
      // Commander gives the arguments, the options and the command.
      const [args, options] = [given.slice(0, -2), given.at(-2)];
      const source = settings();
      const tools = await open(source);
      const progress = new Progress(output, source.json === true);
      try {
        await work(
          {
            ...tools,
            operator: ({ reason, by }) => ({ reason, by: by ?? nameOfUser() }),
            progress: (text, share) => progress.show(text, share),
          },
          (result, text) => {
            progress.end();
            output.out(source.json === true ? toJson(result) : text);
          },
          options as never,
          ...(args as never),
        );
      } finally {
        progress.end();
        await tools.close();
      }
    };
}
