/** Runs work on every item in order, so many at a time at most; resolves when all is done. */
export async function runAll<Item>(
  items: readonly Item[],
  concurrency: number,
  run: (item: Item) => Promise<void>,
): Promise<void> {
  const iterator = items.values();
  const lane = async () => {
    // Shared by all lanes, so each item is taken once.
    for (const item of iterator) await run(item);
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, items.length) }, lane));
}
