/** Lets one after the other, in the order in which they came. */
export class Turn {
  private last: Promise<void> = Promise.resolve();

  /** Resolves when it is the caller's turn, with what ends it. */
  async take(): Promise<() => void> {
    const before = this.last;
    let end!: () => void;
    this.last = new Promise<void>((resolve) => {
      end = resolve;
    });
    await before;
    return end;
  }
}
