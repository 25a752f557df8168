import type { Delivery } from '../schemas/webhook.ts';
import type { WebhookCallbacks } from './callbacks.ts';
import { GuardedCall } from './guarded-call.ts';
import type { WorkPlan } from './work-plan.ts';

/** What the announcements of one webhook need of its run. */
export interface Announcements {
  /** Deliveries whose new events were handled: they are no mere snapshots. */
  readonly touched: ReadonlySet<Delivery>;
  readonly handlerTimeoutMs: number;
  readonly signal: AbortSignal | undefined;
  readonly onFailure: (error: unknown, operation: 'snapshot' | 'unhandled') => void;
}

/**
 * Calls `onSnapshot` and `onUnhandled`, which are told of deliveries and not deduplicated.
 *
 * @returns how many snapshots were taken without a failure
 */
export async function announce(
  plan: Pick<WorkPlan, 'snapshots' | 'unhandled'>,
  { onSnapshot, onUnhandled }: Pick<WebhookCallbacks, 'onSnapshot' | 'onUnhandled'>,
  { touched, handlerTimeoutMs, signal, onFailure }: Announcements,
): Promise<number> {
  const tell = async (callback: () => unknown, operation: 'snapshot' | 'unhandled'): Promise<boolean> => {
    try {
      await new GuardedCall().run(callback, handlerTimeoutMs, signal);
      return true;
    } catch (error) {
      onFailure(error, operation);
      return false;
    }
  };
  let taken = 0;
  for (const delivery of plan.snapshots) {
    if (onSnapshot === undefined || touched.has(delivery)) continue;
    if (await tell(() => onSnapshot(delivery), 'snapshot')) taken += 1;
  }
  for (const delivery of plan.unhandled) await tell(() => onUnhandled?.(delivery), 'unhandled');
  return taken;
}
