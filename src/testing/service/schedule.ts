interface Action {
  readonly atMs: number;
  /** How many actions were added before. */
  readonly position: number;
  readonly run: (atMs: number) => void;
}

function isBefore(a: Action, b: Action): boolean {
  return a.atMs === b.atMs ? a.position < b.position : a.atMs < b.atMs;
}

/** Planned actions in a binary heap: the earliest comes first, and actions of the same time keep their order. */
export class Schedule {
  readonly #heap: Action[] = [];
  #added = 0;

  add(atMs: number, run: (atMs: number) => void): void {
    const action = { atMs, position: this.#added, run };
    this.#added += 1;
    let place = this.#heap.push(action) - 1;
    while (place > 0) {
      const parentPlace = (place - 1) >> 1;
      const parent = this.#heap[parentPlace];
      if (parent === undefined || isBefore(parent, action)) break;
      this.#heap[place] = parent;
      place = parentPlace;
    }
    this.#heap[place] = action;
  }

  /** Removes and returns the next action, if it is due. */
  takeDue(nowMs: number): Action | undefined {
    const [first] = this.#heap;
    if (first === undefined || first.atMs > nowMs) return undefined;
    const last = this.#heap.pop();
    if (last !== undefined && last !== first) this.#sink(last);
    return first;
  }

  /** Puts an action at the top and moves it down, until no action below comes before it. */
  #sink(action: Action): void {
    let place = 0;
    for (;;) {
      const leftPlace = 2 * place + 1;
      const left = this.#heap[leftPlace];
      const right = this.#heap[leftPlace + 1];
      const isRight = left !== undefined && right !== undefined && isBefore(right, left);
      const child = isRight ? right : left;
      if (child === undefined || isBefore(action, child)) break;
      this.#heap[place] = child;
      place = isRight ? leftPlace + 1 : leftPlace;
    }
    this.#heap[place] = action;
  }
}
