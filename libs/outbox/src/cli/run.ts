import { userInfo } from 'node:os';
import type { Operator } from '../operate/audit';
import { openOperator, type OperatorTools, type Source } from './operator';
import type { Output } from './print';

export interface Tools extends OperatorTools {
  operator(given: { readonly reason: string; readonly by: string | undefined }): Operator;
  progress(text: string): void;
}

/** Prints a result: as JSON where that was asked for, else the text. */
export type Print = (result: unknown, text: string) => void;

type Work<O, A extends readonly unknown[]> = (tools: Tools, print: Print, options: O, ...args: A) => Promise<void>;

/** Makes the action of a command: its arguments come first, then its options. */
export type Run = <O extends object, A extends readonly unknown[]>(work: Work<O, A>) => (...given: unknown[]) => Promise<void>;

export function runner(settings: () => Source & { readonly json?: boolean }, output: Output): Run {
  return (work) =>
    async (...given) => {
      // Commander gives the arguments, the options and the command.
      const [args, options] = [given.slice(0, -2), given.at(-2)];
      const source = settings();
      const tools = await openOperator(source);
      try {
        await work(
          {
            ...tools,
            operator: ({ reason, by }) => ({ reason, by: by ?? userInfo().username }),
            progress: (text) => output.err(text),
          },
          (result, text) => output.out(source.json === true ? JSON.stringify(result) : text),
          options as never,
          ...(args as never),
        );
      } finally {
        await tools.close();
      }
    };
}
