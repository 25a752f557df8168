import { randomUUID } from 'node:crypto';
import * as z from 'zod';
import { sleep } from '../common/clock.ts';
import { checkOptions, delayOption, type OptionShape } from '../common/option-checks.ts';
import { TrackingError } from '../errors.ts';
import type { WebhookMessage } from '../schemas/webhook.ts';
import { buildItemError, getField, type ParsedWebhook, parseWebhook } from './parse.ts';
import {
  checkCallbacks,
  type EventCallback,
  type InboxSettings,
  type ProcessOptions,
  resolveInboxOptions,
  type StoreInboxSettings,
  type WebhookCallbacks,
  type WebhookFailure,
  type WebhookInboxOptions,
  type WebhookProcessor,
  type WebhookReport,
} from './processor.ts';
import {
  applyClaim,
  buildReport,
  callWithTimeout,
  checkClaims,
  getItems,
  getKeys,
  isClaimed,
  isOpen,
  type Job,
  planJobs,
  StoreTimeoutError,
  setState,
  type WorkItem,
  withTimeLimit,
} from './work.ts';

/** This is longer than two statements of 2 s, because a batched call first waits for the statement under way. */
const STORE_TIMEOUT_MS = 4_500;
const FIRST_PAUSE_MS = 50;
const MAX_BUSY_PAUSE_MS = 400;
const COMMIT_TRIES_MS = 10_000;
const MAX_COMMIT_PAUSE_MS = 1_600;

/**
 * Handles every event once, however often it is delivered and to however many receivers. If a callback fails or the
 * process crashes, the sender delivers the event again (docs/service.md 8.5).
 *
 * @example
 * const inbox = new WebhookInbox({ store: new MemoryDedupeStore() });
 * const report = await inbox.process(body, async (event, { message }) => {
 *   await saveEvent(message.tracker.trackerId, event);
 * });
 * // report.outcome: 'done'; respond with 200 only then
 */
export class WebhookInbox implements WebhookProcessor {
  readonly #settings: StoreInboxSettings;

  /**
   * @param options - see `WebhookInboxOptions`
   * @throws ConfigurationError when an option is missing or makes no sense
   */
  constructor(options: WebhookInboxOptions) {
    this.#settings = resolveInboxOptions(options);
  }

  async process(
    payload: unknown,
    callbacks: EventCallback | WebhookCallbacks,
    options: ProcessOptions = {},
  ): Promise<WebhookReport> {
    return processWebhook(this.#settings, payload, callbacks, options, async (jobs, giveUpAt, signal) => {
      for (let index = 0; ; index += 1) {
        await new Round(this.#settings, jobs, signal).run();
        const items = getItems(jobs);
        const remainingMs = giveUpAt - performance.now();
        if (remainingMs <= 0 || signal?.aborted || !items.some(isOpen) || isStoreDown(items)) return;
        await sleep(Math.min(FIRST_PAUSE_MS * 2 ** index, MAX_BUSY_PAUSE_MS, remainingMs), signal).catch(
          () => {},
        );
      }
    });
  }
}

const processOptions = z.strictObject({
  busyTimeoutMs: delayOption.default(8_000),
  signal: z.custom<AbortSignal>().optional(),
} satisfies OptionShape<ProcessOptions>);

/** Processes a webhook for any inbox. `runJobs` waits for busy items until `giveUpAt`, a time of `performance.now`. */
export async function processWebhook<Extra extends object>(
  settings: InboxSettings<Extra>,
  payload: unknown,
  callbacks: EventCallback<Extra> | WebhookCallbacks<Extra>,
  options: ProcessOptions,
  runJobs: (jobs: readonly Job<Extra>[], giveUpAt: number, signal: AbortSignal | undefined) => Promise<void>,
): Promise<WebhookReport> {
  const checked = checkCallbacks(callbacks);
  const { busyTimeoutMs, signal } = checkOptions(processOptions, options);
  const giveUpAt = performance.now() + busyTimeoutMs;
  const parsed = parseWebhook(payload);
  reportIssues(settings, parsed);
  const { jobs, others } = planJobs(parsed.messages, checked);
  if (jobs.length > 0) await runJobs(jobs, giveUpAt, signal);
  // An item without an outcome was not handled, so the sender must send it again.
  setState(
    getItems(jobs).filter(({ state }) => state === 'open'),
    'unavailable',
  );
  // If the store is down, `onOther` is not called, because the sender repeats the whole webhook.
  const { onOther } = isStoreDown(getItems(jobs)) ? {} : checked;
  const notified = await callOnOther(settings, onOther, others, signal);
  return buildReport(jobs, { ...parsed, ...notified, others: others.length });
}

export function isStoreDown(items: readonly WorkItem[]): boolean {
  return items.some(({ state }) => state === 'unavailable');
}

function reportIssues({ onError, knownMismatches }: InboxSettings<never>, parsed: ParsedWebhook): void {
  for (const item of parsed.rejected) onError(buildItemError('Rejected item', item), 'parse', []);
  for (const { index, issues } of parsed.mismatched) {
    const news = issues.filter((issue) => !knownMismatches.has(getField(issue)));
    for (const issue of news) knownMismatches.add(getField(issue));
    if (news.length > 0) onError(buildItemError('Kept fields of item', { index, issues: news }), 'parse', []);
  }
}

async function callOnOther(
  { callbackTimeoutMs, onError }: InboxSettings<never>,
  onOther: WebhookCallbacks['onOther'],
  others: readonly WebhookMessage[],
  signal: AbortSignal | undefined,
): Promise<{ readonly failures: WebhookFailure[]; readonly isInterrupted: boolean }> {
  const failures: WebhookFailure[] = [];
  if (onOther === undefined) return { failures, isInterrupted: false };
  for (const message of others) {
    // Report an interruption, because the sender must repeat a message that no callback saw.
    if (signal?.aborted) return { failures, isInterrupted: true };
    try {
      await callWithTimeout([], () => onOther(message), callbackTimeoutMs, undefined);
    } catch (error) {
      onError(error, 'other', []);
      failures.push({ keys: [], error });
    }
  }
  return { failures, isInterrupted: false };
}

/** One pass over the open items of a webhook, from their claim to their release. */
class Round {
  readonly #settings: StoreInboxSettings;
  readonly #jobs: readonly Job<object>[];
  readonly #signal: AbortSignal | undefined;
  readonly #token = randomUUID();
  #itemsOfRound: readonly WorkItem[] = [];
  #claimedAt = 0;
  readonly #uncommitted = new Set<WorkItem>();
  #callUnderWay: { readonly items: readonly WorkItem[]; readonly controller: AbortController } | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #renewal: Promise<void> | undefined;

  constructor(settings: StoreInboxSettings, jobs: readonly Job<object>[], signal: AbortSignal | undefined) {
    this.#settings = settings;
    this.#jobs = jobs;
    this.#signal = signal;
  }

  async run(): Promise<void> {
    const items = getItems(this.#jobs).filter(isOpen);
    try {
      await this.#claim(items, isOpen);
    } catch (error) {
      this.#settings.onError(error, 'claim', getKeys(items));
      setState(items, 'unavailable');
      // The store may have executed the failed claim, or may still do so. Release without waiting for a store that may be down.
      const release = () => void this.#release(items, () => {});
      release();
      if (error instanceof StoreTimeoutError) error.onLateSuccess(release);
      return;
    }
    this.#itemsOfRound = items.filter(isClaimed);
    if (this.#itemsOfRound.length === 0) return;
    this.#startTimer();
    for (const job of this.#jobs) await this.#handle(job);
    await this.#commitUntilDone();
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const undone = this.#itemsOfRound.filter(({ state }) =>
      ['failed', 'interrupted', 'unavailable'].includes(state),
    );
    // If a renewal reached the store after the release, it would lease keys that nobody works on.
    const ended = Promise.resolve(this.#renewal).then(() =>
      this.#release(undone, (error) => this.#settings.onError(error, 'release', getKeys(undone))),
    );
    if (!isStoreDown(this.#itemsOfRound)) await ended;
  }

  async #handle(job: Job<object>): Promise<void> {
    if (this.#signal?.aborted) return setState(job.items.filter(isClaimed), 'interrupted');
    if (!job.items.some(isClaimed)) return;
    await this.#ensureLeases();
    // Leave out items that another receiver took over, and those whose lease could not be renewed.
    const items = job.items.filter(isClaimed);
    if (items.length === 0) return;
    try {
      await this.#call(items, (context) => job.call(items, context));
      this.#finish(items, 'handled');
    } catch (error) {
      this.#settings.onError(error, 'callback', getKeys(items));
      // Items that another receiver has taken over meanwhile did not fail here.
      for (const item of items.filter(isClaimed)) await this.#fail(item, error);
    }
  }

  async #fail(item: WorkItem, error: unknown): Promise<void> {
    item.error = error;
    const { maxAttempts, onDeadLetter } = this.#settings;
    if (onDeadLetter === undefined || item.attempt < maxAttempts) return setState([item], 'failed');
    // Renew the lease first, because two receivers must not report the same dead letter.
    await this.#ensureLeases();
    if (!isClaimed(item)) return;
    const { event, message, key } = item;
    try {
      await this.#call([item], (context) => onDeadLetter(event, { ...context, message, key, error }));
      this.#finish([item], 'deadLettered');
    } catch (cause) {
      this.#settings.onError(cause, 'deadLetter', [key]);
      item.error = cause;
      if (isClaimed(item)) item.state = 'failed';
    }
  }

  async #call(items: readonly WorkItem[], callback: Parameters<typeof callWithTimeout>[1]): Promise<void> {
    try {
      await callWithTimeout(items, callback, this.#settings.callbackTimeoutMs, this.#signal, (controller) => {
        this.#callUnderWay = { items, controller };
      });
    } finally {
      this.#callUnderWay = undefined;
    }
  }

  /** The callback succeeded, so the item is committed even if another receiver took it over. */
  #finish(items: readonly WorkItem[], state: 'handled' | 'deadLettered'): void {
    setState(items, state);
    for (const item of items) this.#uncommitted.add(item);
  }

  /** Leases all items, but then updates only those that pass `canUpdate`, because the others already have their outcome. */
  async #claim(items: readonly WorkItem[], canUpdate: (item: WorkItem) => boolean): Promise<void> {
    const { store, leaseMs } = this.#settings;
    const keys = getKeys(items);
    const claimedAt = performance.now();
    const claims = checkClaims(
      await withTimeLimit(async () => store.claim(keys, { token: this.#token, leaseMs }), STORE_TIMEOUT_MS),
      keys.length,
    );
    this.#claimedAt = claimedAt;
    for (const [index, item] of items.entries()) {
      const claim = claims[index];
      if (claim !== undefined && canUpdate(item)) applyClaim(item, claim);
    }
  }

  /** Renews handled items, too, because they stay leased until they are committed. */
  async #renew(): Promise<void> {
    const items = this.#itemsOfRound.filter((item) => isClaimed(item) || this.#uncommitted.has(item));
    if (items.length > 0) await this.#claim(items, isClaimed);
    if (this.#callUnderWay?.items.every(isClaimed) === false) {
      this.#callUnderWay.controller.abort(new TrackingError('Another receiver took the work over'));
    }
  }

  /** Renews leases that are half over. If this machine was suspended, other receivers may have taken items over. */
  async #ensureLeases(): Promise<void> {
    if (performance.now() - this.#claimedAt < this.#settings.leaseMs / 2) return;
    try {
      await this.#renew();
    } catch (error) {
      // Give up all items, because each of them would wait for the store again.
      const items = this.#itemsOfRound.filter(isClaimed);
      this.#settings.onError(error, 'claim', getKeys(items));
      setState(items, 'unavailable');
    }
  }

  #startTimer(): void {
    this.#timer = setTimeout(async () => {
      this.#renewal = this.#commitAndRenew();
      await this.#renewal;
      if (this.#timer !== undefined) this.#startTimer();
    }, this.#settings.leaseMs / 3);
    // This timer alone must not keep the process alive. A Worker's timer is a number, without `unref`.
    this.#timer.unref?.();
  }

  async #commitAndRenew(): Promise<void> {
    await this.#commit();
    await this.#renew().catch((error) => {
      const items = this.#itemsOfRound.filter(isClaimed);
      this.#settings.onError(error, 'renew', getKeys(items));
    });
  }

  /** Tries to commit for ten seconds, because without the commit a redelivery would repeat work that is done. */
  async #commitUntilDone(): Promise<void> {
    if (await this.#commit()) return;
    const giveUpAt = performance.now() + COMMIT_TRIES_MS;
    for (let index = 0; ; index += 1) {
      const remainingMs = giveUpAt - performance.now();
      if (remainingMs <= 0) return;
      await sleep(Math.min(FIRST_PAUSE_MS * 2 ** index, MAX_COMMIT_PAUSE_MS, remainingMs));
      if (await this.#commit()) return;
    }
  }

  async #commit(): Promise<boolean> {
    const items = [...this.#uncommitted];
    if (items.length === 0) return true;
    const { store, retainMs } = this.#settings;
    const keys = getKeys(items);
    try {
      await withTimeLimit(async () => store.commit(keys, { retainMs }), STORE_TIMEOUT_MS);
    } catch (error) {
      this.#settings.onError(error, 'commit', keys);
      return false;
    }
    for (const item of items) this.#uncommitted.delete(item);
    return true;
  }

  async #release(items: readonly WorkItem[], onFailure: (error: unknown) => void): Promise<void> {
    if (items.length === 0) return;
    const { store } = this.#settings;
    const release = async () => store.release(getKeys(items), { token: this.#token });
    await withTimeLimit(release, STORE_TIMEOUT_MS).catch(onFailure);
  }
}
