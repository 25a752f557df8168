import type { EventsMessage, ProofOfDelivery } from '../../schemas/webhook.ts';

/** An item of `trackings[]` as it is sent, without `kind`, which only `parseWebhook` adds. */
export type PushItem = Omit<EventsMessage, 'kind'> | Omit<ProofOfDelivery, 'kind'>;

/** One attempt to send a push. */
export interface PushAttempt {
  /** ISO 8601, on the fake's clock. */
  readonly sentAt: string;
  /** The receiver's status; `null` when the receiver did not respond. */
  readonly status: number | null;
  /** True when the receiver accepted the push. */
  readonly succeeded: boolean;
  /** The URL of the receiver; `null` when it is a function. */
  readonly url: string | null;
  /** The body that was sent. */
  readonly requestBody: unknown;
  /** Body of the response: parsed when it is JSON, else the text; `null` when it is empty. */
  readonly responseBody: unknown;
  /** Headers of the response; names in lower case. */
  readonly responseHeaders: Readonly<Record<string, string>>;
}

/** One item of `trackings[]` that waits to be sent to the receiver, or was sent. */
export interface QueuedPush {
  /** The id of the tracker that the push is about. */
  readonly trackerId: string;
  /** The item to send. */
  readonly item: PushItem;
  /** True when a resend queued the push, not a new event. */
  readonly isReplay: boolean;
  /** The attempts so far. */
  readonly attempts: readonly PushAttempt[];
}

/** The pushes of a fake service, in the order they were queued. */
export class WebhookQueue {
  readonly #now: () => number;
  readonly #historyLimit: number;
  readonly #waiting: QueuedPush[] = [];
  readonly #attempts = new Map<QueuedPush, PushAttempt[]>();

  /** @internal Calling `now` runs all actions that are due. */
  constructor(now: () => number, historyLimit: number) {
    this.#now = now;
    this.#historyLimit = historyLimit;
  }

  /** The pushes that wait to be sent, oldest first. */
  get pending(): readonly QueuedPush[] {
    this.#now();
    return [...this.#waiting];
  }

  /** The latest pushes that were queued, at most `historyLimit`, oldest first, with the attempts to send them. */
  get history(): readonly QueuedPush[] {
    this.#now();
    return [...this.#attempts.keys()];
  }

  /**
   * Removes all pushes from the queue.
   *
   * @returns the pushes, oldest first
   */
  take(): QueuedPush[] {
    this.#now();
    return this.#waiting.splice(0);
  }

  /**
   * Records how a request to the receiver ended, for the webhook history of its trackers.
   *
   * @param sent - the push or the pushes that the request contained
   * @param attempt - status and result; missing parts of the request and the response are filled in
   */
  record(
    sent: QueuedPush | readonly QueuedPush[],
    attempt: Pick<PushAttempt, 'status' | 'succeeded'> & Partial<PushAttempt>,
  ): void {
    const pushes = [sent].flat();
    const recorded: PushAttempt = {
      sentAt: new Date(this.#now()).toISOString(),
      url: null,
      requestBody: { trackings: pushes.map(({ item }) => item) },
      responseBody: null,
      responseHeaders: {},
      ...attempt,
    };
    for (const push of pushes) this.#attempts.get(push)?.push(recorded);
  }

  /**
   * Queues a push; the fake calls this.
   *
   * @param trackerId - the id of the tracker that the push is about
   * @param item - the item to send
   * @param isReplay - true for a resend; default false
   */
  add(trackerId: string, item: PushItem, isReplay = false): void {
    const attempts: PushAttempt[] = [];
    const push = { trackerId, item, isReplay, attempts };
    this.#waiting.push(push);
    this.#attempts.set(push, attempts);
    const [oldest] = this.#attempts.keys();
    if (this.#attempts.size > this.#historyLimit && oldest !== undefined) this.#attempts.delete(oldest);
  }
}
