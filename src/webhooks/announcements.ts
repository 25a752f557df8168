// Specification: service.md 6
import { Cancellation, callWithTimeout, type WorkPlan } from './callbacks.ts';
import type { InboxSettings } from './options.ts';
import type { KeylessReport, WebhookFailure } from './report.ts';

/** Calls `onSnapshot` and `onUnhandled`, which are not deduplicated, once all items have their outcomes. */
export async function announce<Extra extends object>(
  { handlerTimeoutMs, onError }: InboxSettings<Extra>,
  { units, snapshots, unhandled, callbacks }: WorkPlan<Extra>,
  signal: AbortSignal | undefined,
): Promise<Pick<KeylessReport, 'failures' | 'snapshots' | 'isCutShort'>> {
  const failures: WebhookFailure[] = [];
  const announced = { failures, snapshots: 0, isCutShort: false };
  const { onSnapshot, onUnhandled } = callbacks;
  const call = async (callback: () => unknown, operation: 'snapshot' | 'unhandled') => {
    // It must come again, or nobody ever sees it.
    if (signal?.aborted === true) announced.isCutShort = true;
    try {
      if (announced.isCutShort) return false;
      // These callbacks get no signal that an abort could be passed on to.
      await callWithTimeout(callback, handlerTimeoutMs, new Cancellation(undefined));
      return true;
    } catch (error) {
      onError(error, operation, []);
      failures.push({ keys: [], error });
      return false;
    }
  };
  if (onSnapshot !== undefined) {
    const touched = new Set<unknown>();
    for (const { items } of units)
      for (const { outcome, delivery } of items) if (outcome !== 'duplicate') touched.add(delivery);
    for (const delivery of snapshots) {
      if (touched.has(delivery)) continue;
      if (await call(() => onSnapshot(delivery), 'snapshot')) announced.snapshots += 1;
    }
  }
  if (onUnhandled !== undefined) {
    for (const delivery of unhandled) await call(() => onUnhandled(delivery), 'unhandled');
  }
  return announced;
}
