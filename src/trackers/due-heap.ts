/** Something that is due at some time. Only the heap writes `place` and `turn`. */
export interface Due {
  dueAt: number;
  /** Index in the heap; -1 outside it. */
  place: number;
  /** Tells who came first among those that are due at the same time. */
  turn: number;
}

function isBefore(one: Due, other: Due): boolean {
  return one.dueAt < other.dueAt || (one.dueAt === other.dueAt && one.turn < other.turn);
}

/** Whoever is due first comes first, in O(log n); also removes from the middle. */
export class DueHeap<Item extends Due> {
  readonly #items: Item[] = [];
  #turns = 0;

  get first(): Item | undefined {
    return this.#items[0];
  }

  push(item: Item): void {
    this.#turns += 1;
    item.turn = this.#turns;
    this.#rise(item, this.#items.length);
  }

  /** Takes an item out; does nothing when it is not in. */
  remove(item: Item): void {
    const { place } = item;
    if (place < 0 || this.#items[place] !== item) return;
    item.place = -1;
    const last = this.#items.pop();
    if (last === undefined || last === item) return;
    // The item from the end may belong above or below the gap.
    this.#rise(last, place);
    this.#sink(last);
  }

  clear(): void {
    for (const item of this.#items) item.place = -1;
    this.#items.length = 0;
  }

  #put(item: Item, place: number): void {
    this.#items[place] = item;
    item.place = place;
  }

  #rise(item: Item, from: number): void {
    let place = from;
    while (place > 0) {
      const above = (place - 1) >> 1;
      const parent = this.#items[above];
      if (parent === undefined || !isBefore(item, parent)) break;
      this.#put(parent, place);
      place = above;
    }
    this.#put(item, place);
  }

  #sink(item: Item): void {
    let { place } = item;
    for (;;) {
      const left = this.#items[2 * place + 1];
      const right = this.#items[2 * place + 2];
      const child = left !== undefined && right !== undefined && isBefore(right, left) ? right : left;
      if (child === undefined || !isBefore(child, item)) break;
      const below = child.place;
      this.#put(child, place);
      place = below;
    }
    this.#put(item, place);
  }
}
