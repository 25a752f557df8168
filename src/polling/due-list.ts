/** Trackers sorted by the time of their next poll; those due at the same time keep the order in which they were added. */
export class DueList<Item extends { dueAt: number }> {
  readonly #items: Item[] = [];

  get first(): Item | undefined {
    return this.#items[0];
  }

  add(item: Item): void {
    this.#items.splice(this.#findEnd(item.dueAt), 0, item);
  }

  /** Returns false for an item that is not in the list. */
  remove(item: Item): boolean {
    const index = item === this.first ? 0 : this.#items.indexOf(item, this.#findEnd(item.dueAt - 1));
    if (index >= 0) this.#items.splice(index, 1);
    return index >= 0;
  }

  /** Finds the end of the items that are due at `dueAt` or before. Most items are added at the end, so it looks there first. */
  #findEnd(dueAt: number): number {
    let low = 0;
    let high = this.#items.length;
    if ((this.#items.at(-1)?.dueAt ?? dueAt) <= dueAt) return high;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#items[middle]?.dueAt ?? dueAt) <= dueAt) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
