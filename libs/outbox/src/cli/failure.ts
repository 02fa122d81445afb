/** What the user is told, with the exit code that says of which kind it is. */
export class Failure extends Error {
  constructor(
    message: string,
    /** 1: something was found wrong, or could not be done. 2: wrong use. */
    readonly exitCode: 1 | 2,
    options?: { cause?: unknown },
  ) {
    super(message, options);
  }
}
