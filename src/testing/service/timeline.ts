interface Action {
  readonly atMs: number;
  readonly run: (atMs: number) => void;
}

/**
 * What is going to happen, in order. Nothing here holds a timer: time passes when somebody looks,
 * so the fake obeys any clock and never keeps a process alive.
 */
export class Timeline {
  /** Latest first, so the next action is popped off the end. */
  readonly #actions: Action[] = [];

  /** Plans an action; actions of the same instant run in the order they were planned. */
  schedule(atMs: number, run: (atMs: number) => void): void {
    let low = 0;
    let high = this.#actions.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const action = this.#actions[middle];
      if (action !== undefined && action.atMs > atMs) low = middle + 1;
      else high = middle;
    }
    this.#actions.splice(low, 0, { atMs, run });
  }

  /** Runs everything that is due, each action at its own instant. */
  catchUp(nowMs: number): void {
    for (let next = this.#actions.at(-1); next !== undefined && next.atMs <= nowMs; ) {
      this.#actions.pop();
      next.run(next.atMs);
      next = this.#actions.at(-1);
    }
  }
}
