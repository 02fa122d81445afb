/** A point in time that waits can be bounded by. Must be disposed of, or its timer keeps the process alive. */
export class Deadline {
  private readonly end: number;
  private readonly timer: NodeJS.Timeout;
  private readonly over: Promise<null>;
  private resolve: (over: null) => void = () => {};
  private passed = false;

  /** @param milliseconds from now */
  constructor(milliseconds: number) {
    this.end = performance.now() + milliseconds;
    this.over = new Promise((resolve) => {
      this.resolve = resolve;
    });
    this.timer = setTimeout(() => this.cut(), milliseconds);
  }

  get expired(): boolean {
    return this.passed || performance.now() >= this.end;
  }

  /** Milliseconds that are left, 0 when none are. */
  get remaining(): number {
    return this.passed ? 0 : Math.max(0, this.end - performance.now());
  }

  /** Resolves with the promise's value in a box, or with `null` when the time was over first. */
  race<T>(promise: Promise<T>): Promise<{ readonly value: T } | null> {
    return Promise.race([promise.then((value) => ({ value })), this.over]);
  }

  /** Ends the time now. */
  cut(): void {
    this.passed = true;
    this.dispose();
    this.resolve(null);
  }

  dispose(): void {
    clearTimeout(this.timer);
  }
}
