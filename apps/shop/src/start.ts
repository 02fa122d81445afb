import { EnvironmentError } from './environment.js';

/** Runs an app's `main`. What the environment lacks is said in plain lines, without a stack trace. */
export async function start(main: () => Promise<unknown>): Promise<void> {
  try {
    await main();
  } catch (error) {
    if (!(error instanceof EnvironmentError)) throw error;
    console.error(error.message);
    process.exitCode = 1;
  }
}
