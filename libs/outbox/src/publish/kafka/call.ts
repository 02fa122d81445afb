import { Deadline } from '../deadline';

/** Work that is under way, and the time that it has. */
export interface Call<T> {
  readonly deadline: Deadline;
  readonly result: Promise<T>;
  /** Never rejects. */
  readonly settled: Promise<unknown>;
}

/** @param timeout in milliseconds */
export function call<T>(timeout: number, work: (deadline: Deadline) => Promise<T>): Call<T> {
  const deadline = new Deadline(timeout);
  const result = work(deadline).finally(() => deadline.dispose());
  return { deadline, result, settled: result.catch(() => undefined) };
}
