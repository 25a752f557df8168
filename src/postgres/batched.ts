import { withTimeLimit } from '../common/guarded.ts';
import { callStore, StoreTimeoutError } from '../webhooks/dedupe-store.ts';

interface WaitingCall<Item, Result> {
  readonly items: readonly Item[];
  readonly resolve: (results: readonly Result[]) => void;
  readonly reject: (error: unknown) => void;
  /** Set when the call has taken longer than its limit. */
  hasGivenUp: boolean;
}

/**
 * Calls made while a statement is under way share the next statement; if it fails, all of them fail. After `limitMs` a call
 * rejects and the next statement starts. `send` resolves to one result for each item. It takes the items only when it has a
 * connection, so calls that gave up while they waited for the connection are left out.
 */
export function batched<Item, Result>(
  send: (takeItems: () => readonly Item[]) => Promise<readonly Result[]>,
  limitMs: number,
): (items: readonly Item[]) => Promise<readonly Result[]> {
  let waiting: WaitingCall<Item, Result>[] = [];
  let isUnderWay = false;

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
    while (waiting.length > 0) {
      const calls = waiting;
      waiting = [];
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
        call.hasGivenUp = true;
      };
      waiting.push(call);
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
