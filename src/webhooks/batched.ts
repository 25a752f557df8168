import { withTimeLimit } from '../common/time-limit.ts';
import { callStore, StoreTimeoutError } from './dedupe-store.ts';

/** Limits the size of a shared statement. A call with more items is not split, but sent alone. */
const MAX_BATCH_ITEMS = 1_000;

interface WaitingCall<Item, Result> {
  readonly items: readonly Item[];
  readonly resolve: (results: readonly Result[]) => void;
  readonly reject: (error: unknown) => void;
  /** Set when the call has taken longer than its limit. */
  hasGivenUp: boolean;
}

/**
 * Calls made while a statement is under way share the next statement; if it fails, all of them fail. After `limitMs` a call
 * rejects and the next statement starts. `send` takes the items when it is ready to send them, without the items of calls that
 * have given up by then, and resolves to one result per item.
 */
export function batched<Item, Result>(
  send: (takeItems: () => readonly Item[]) => Promise<readonly Result[]>,
  limitMs: number,
): (items: readonly Item[]) => Promise<readonly Result[]> {
  const waiting = new Set<WaitingCall<Item, Result>>();
  let isUnderWay = false;

  function takeCalls(): readonly WaitingCall<Item, Result>[] {
    const calls: WaitingCall<Item, Result>[] = [];
    let itemCount = 0;
    for (const call of waiting) {
      itemCount += call.items.length;
      if (calls.length > 0 && itemCount > MAX_BATCH_ITEMS) break;
      calls.push(call);
      waiting.delete(call);
    }
    return calls;
  }

  async function sendCalls(calls: readonly WaitingCall<Item, Result>[]): Promise<void> {
    let sent: readonly WaitingCall<Item, Result>[] = [];
    try {
      const results = await send(() => {
        sent = calls.filter(({ hasGivenUp }) => !hasGivenUp);
        return sent.flatMap(({ items }) => items);
      });
      let start = 0;
      for (const { items, resolve } of sent) {
        resolve(results.slice(start, start + items.length));
        start += items.length;
      }
    } catch (error) {
      for (const { reject } of calls) reject(error);
    }
  }

  async function sendWaiting(): Promise<void> {
    if (isUnderWay) return;
    isUnderWay = true;
    while (waiting.size > 0) {
      const calls = takeCalls();
      // A statement that takes too long goes on, but later calls do not wait for it.
      await callStore(() => sendCalls(calls), limitMs).catch(() => {});
    }
    isUnderWay = false;
  }

  return (items) => {
    let giveUp = () => {};
    const result = new Promise<readonly Result[]>((resolve, reject) => {
      const call = { items, resolve, reject, hasGivenUp: false };
      giveUp = () => {
        waiting.delete(call);
        call.hasGivenUp = true;
      };
      waiting.add(call);
      void sendWaiting();
    });
    return withTimeLimit(
      () => result,
      limitMs,
      (late) => {
        giveUp();
        return new StoreTimeoutError(limitMs, late);
      },
    );
  };
}
