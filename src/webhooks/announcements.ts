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

/** How far the announcements got. */
export interface Announced {
  /** How many snapshots were taken without a failure. */
  readonly snapshots: number;
  /** Whether a shutdown left some untold: they must come again, or nobody ever sees them. */
  readonly isCutShort: boolean;
}

/** Calls `onSnapshot` and `onUnhandled`, which are told of deliveries and not deduplicated. */
export async function announce(
  plan: Pick<WorkPlan, 'snapshots' | 'unhandled'>,
  { onSnapshot, onUnhandled }: Pick<WebhookCallbacks, 'onSnapshot' | 'onUnhandled'>,
  { touched, handlerTimeoutMs, signal, onFailure }: Announcements,
): Promise<Announced> {
  let isCutShort = false;
  const tell = async (callback: () => unknown, operation: 'snapshot' | 'unhandled'): Promise<boolean> => {
    if (signal?.aborted === true) {
      isCutShort = true;
      return false;
    }
    try {
      await new GuardedCall().run(callback, handlerTimeoutMs, signal);
      return true;
    } catch (error) {
      onFailure(error, operation);
      return false;
    }
  };
  let snapshots = 0;
  if (onSnapshot !== undefined) {
    for (const delivery of plan.snapshots) {
      if (touched.has(delivery)) continue;
      if (await tell(() => onSnapshot(delivery), 'snapshot')) snapshots += 1;
    }
  }
  if (onUnhandled !== undefined) {
    for (const delivery of plan.unhandled) await tell(() => onUnhandled(delivery), 'unhandled');
  }
  return { snapshots, isCutShort };
}
