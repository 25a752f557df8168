/** Keeps a statement short enough to be read, locked and answered in one go. A larger call is not split: it goes alone. */
const MAX_ITEMS = 1_000;

interface WaitingCall<Item, Result> {
  readonly items: readonly Item[];
  readonly resolve: (results: readonly Result[]) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Lets calls that are made while a statement is under way share the next one. The first call goes out at once, so batching costs a
 * webhook at most the wait for one other statement. A shared statement that fails fails for all of its calls.
 *
 * @param send - runs one statement; resolves to one result an item. It must end within a time limit, since all others wait for it
 * @returns a function that resolves to the results of its own items
 */
export function batched<Item, Result>(
  send: (items: readonly Item[]) => Promise<readonly Result[]>,
): (items: readonly Item[]) => Promise<readonly Result[]> {
  const waiting: WaitingCall<Item, Result>[] = [];
  let isUnderWay = false;

  function takeCalls(): readonly WaitingCall<Item, Result>[] {
    let itemCount = 0;
    let end = 0;
    for (const { items } of waiting) {
      itemCount += items.length;
      if (end > 0 && itemCount > MAX_ITEMS) break;
      end += 1;
    }
    return waiting.splice(0, end);
  }

  async function sendWaiting(): Promise<void> {
    if (isUnderWay) return;
    isUnderWay = true;
    while (waiting.length > 0) {
      const calls = takeCalls();
      try {
        const results = await send(calls.flatMap(({ items }) => items));
        let start = 0;
        for (const { items, resolve } of calls) {
          resolve(results.slice(start, start + items.length));
          start += items.length;
        }
      } catch (error) {
        for (const { reject } of calls) reject(error);
      }
    }
    isUnderWay = false;
  }

  return (items) =>
    new Promise((resolve, reject) => {
      waiting.push({ items, resolve, reject });
      void sendWaiting();
    });
}
