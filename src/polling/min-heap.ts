export interface HeapItem {
  dueAt: number;
  heapIndex: number;
  /** Counts insertions, so that items due at the same time keep their order. */
  sequence: number;
}

function isBefore(a: HeapItem, b: HeapItem): boolean {
  return a.dueAt < b.dueAt || (a.dueAt === b.dueAt && a.sequence < b.sequence);
}

export class MinHeap<Item extends HeapItem> {
  readonly #items: Item[] = [];
  #insertions = 0;

  get first(): Item | undefined {
    return this.#items[0];
  }

  push(item: Item, dueAt: number): void {
    this.#insertions += 1;
    item.dueAt = dueAt;
    item.sequence = this.#insertions;
    this.#insertAt(this.#items.length, item);
  }

  remove(item: Item): boolean {
    const index = item.heapIndex;
    if (this.#items[index] !== item) return false;
    const last = this.#items.pop();
    if (last !== undefined && last !== item) this.#insertAt(index, last);
    return true;
  }

  #insertAt(gap: number, item: Item): void {
    let index = gap;
    for (;;) {
      const parentIndex = (index - 1) >> 1;
      const parent = this.#items[parentIndex];
      if (parent === undefined || !isBefore(item, parent)) break;
      this.#put(parent, index);
      index = parentIndex;
    }
    for (;;) {
      const left = this.#items[2 * index + 1];
      const right = this.#items[2 * index + 2];
      const child = left !== undefined && right !== undefined && isBefore(right, left) ? right : left;
      if (child === undefined || !isBefore(child, item)) break;
      const childIndex = child.heapIndex;
      this.#put(child, index);
      index = childIndex;
    }
    this.#put(item, index);
  }

  #put(item: Item, index: number): void {
    this.#items[index] = item;
    item.heapIndex = index;
  }
}
