import { randomUUID } from 'node:crypto';
import * as z from 'zod';
import { linkedController, onAbort } from '../common/abort.ts';
import { checkOptions } from '../common/check-options.ts';
import { ReschedulableTimer, sleep, systemClock } from '../common/clock.ts';
import { withTimeLimit } from '../common/guarded.ts';
import { delayOption, type OptionShape } from '../common/validation.ts';
import { TrackingError } from '../errors.ts';
import { type Claim, callStore, checkClaims, StoreTimeoutError } from './dedupe-store.ts';
import {
  applyClaim,
  buildReport,
  getKeys,
  isClaimed,
  isOpen,
  type Job,
  type Plan,
  planJobs,
  setState,
  type WebhookFailure,
  type WebhookReport,
  type WorkItem,
} from './items.ts';
import {
  type CallbackContext,
  checkCallbacks,
  type EventCallback,
  type InboxSettings,
  type ProcessOptions,
  resolveInboxOptions,
  type WebhookCallbacks,
  type WebhookInboxOptions,
} from './options.ts';
import { buildItemError, getField, readWebhook } from './parse.ts';

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
export class WebhookInbox {
  readonly #settings: InboxSettings;

  /**
   * @param options - see `WebhookInboxOptions`
   * @throws ConfigurationError when an option is missing or invalid
   */
  constructor(options: WebhookInboxOptions) {
    this.#settings = resolveInboxOptions(options);
  }

  /** @internal Time limit of one call of the store, in milliseconds. */
  get storeTimeoutMs(): number {
    return this.#settings.storeTimeoutMs;
  }

  /**
   * Handles the new events of a webhook body, oldest first. A callback that fails does not stop the other callbacks.
   *
   * @param payload - the body: text, UTF-8 bytes, or JSON that is parsed already
   * @param callbacks - a function for every new event, or `WebhookCallbacks`
   * @param options - see `ProcessOptions`
   * @returns the report; only `done` and `rejected` leave nothing to redeliver
   * @throws WebhookParseError when the body is not UTF-8 JSON; ConfigurationError when callbacks or options are invalid; RangeError
   * like `buildEventKey`
   */
  async process(
    payload: unknown,
    callbacks: EventCallback | WebhookCallbacks,
    options: ProcessOptions = {},
  ): Promise<WebhookReport> {
    const settings = this.#settings;
    const checked = checkCallbacks(callbacks);
    const { busyTimeoutMs, signal } = checkOptions(processOptions, options);
    const giveUpAt = systemClock.now() + busyTimeoutMs;
    const parsed = readWebhook(payload);
    reportIssues(settings, parsed);
    const plan = planJobs(parsed.messages, checked);
    const { jobs, items } = plan;
    const canGoOn = () => signal?.aborted !== true && !isStoreDown(items);
    let isOneByOne = false;
    for (let index = 0; items.some(isOpen) && canGoOn(); index += 1) {
      const remainingMs = giveUpAt - systemClock.now();
      if (index > 0) {
        if (remainingMs <= 0) break;
        const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** (index - 1), MAX_BUSY_PAUSE_MS, remainingMs);
        await sleep(pauseMs, signal).catch(() => {});
      }
      isOneByOne ||= await new Round(settings, plan, jobs, signal).run();
      if (!isOneByOne) continue;
      for (const job of jobs) if (canGoOn()) await new Round(settings, plan, [job], signal).run();
    }
    const unclaimed = items.filter(({ state }) => state === 'unclaimed');
    setState(unclaimed, signal?.aborted ? 'interrupted' : 'unavailable');
    // If the store is down, the sender redelivers the whole webhook, so call `onOther` only then.
    const { onOther } = isStoreDown(items) ? {} : checked;
    return buildReport(plan, parsed, await callOnOther(settings, onOther, plan, signal));
  }
}

const processOptions = z.strictObject({
  busyTimeoutMs: delayOption.default(8_000),
  signal: z.custom<AbortSignal>().optional(),
} satisfies OptionShape<ProcessOptions>);

const hasClaimed = ({ items }: Job) => items.some(isClaimed);

function isStoreDown(items: readonly WorkItem[]): boolean {
  return items.some(({ state }) => state === 'unavailable');
}

const REJECTED = 'is invalid, and the invalid part is not handled';
const MISMATCHED = 'is handled, although some fields have an unexpected type';

function reportIssues(
  { onError, knownMismatches }: InboxSettings,
  { rejected, mismatched, isEnveloped }: ReturnType<typeof readWebhook>,
): void {
  for (const item of rejected) onError(buildItemError(REJECTED, item, isEnveloped), 'parse', []);
  for (const { index, issues } of mismatched) {
    const news = issues.filter((issue) => !knownMismatches.has(getField(issue)));
    for (const issue of news) knownMismatches.add(getField(issue));
    if (news.length > 0)
      onError(buildItemError(MISMATCHED, { index, issues: news }, isEnveloped), 'parse', []);
  }
}

async function callOnOther(
  { callbackTimeoutMs, onError }: InboxSettings,
  onOther: WebhookCallbacks['onOther'],
  { others }: Plan,
  signal: AbortSignal | undefined,
) {
  const failures: WebhookFailure[] = [];
  if (onOther === undefined) return { failures, isInterrupted: false };
  for (const message of others) {
    // The sender must redeliver a message that no callback saw.
    if (signal?.aborted) return { failures, isInterrupted: true };
    try {
      await callWithTimeout(() => onOther(message), callbackTimeoutMs);
    } catch (error) {
      // A callback that was cut short by a shutdown has not failed.
      if (signal?.aborted) return { failures, isInterrupted: true };
      onError(error, 'other', []);
      failures.push({ keys: [], error });
    }
  }
  return { failures, isInterrupted: false };
}

/** Runs a callback. After `timeoutMs`, rejects and aborts `controller`. */
async function callWithTimeout(
  callback: () => unknown,
  timeoutMs: number,
  controller?: AbortController,
): Promise<void> {
  const buildError = () => {
    const message = `The callback did not finish within ${timeoutMs} ms (\`callbackTimeoutMs\`)`;
    const error = new TrackingError(message);
    controller?.abort(error);
    return error;
  };
  await withTimeLimit(async () => callback(), timeoutMs, buildError);
}

/** Claims the open items of some jobs, handles them, commits the handled items, and releases the others. */
class Round {
  readonly #settings: InboxSettings;
  readonly #plan: Plan;
  readonly #jobs: readonly Job[];
  readonly #signal: AbortSignal | undefined;
  readonly #items: readonly WorkItem[];
  /** Each round has a token of its own, so a release that is late cannot free the keys of a later round. */
  readonly #token = randomUUID();
  readonly #renewTimer = new ReschedulableTimer(() => void this.#commitAndRenew());
  readonly #leaseTimer = new ReschedulableTimer(() => this.#checkLease());
  readonly #uncommitted = new Set<WorkItem>();
  /** The calls of claims that timed out. */
  readonly #lateClaims: Promise<unknown>[] = [];
  #leaseEndsAt = 0;
  #renewal: Promise<void> | undefined;
  #callUnderWay:
    | { readonly items: readonly WorkItem[]; readonly controller: AbortController; hasLostLease: boolean }
    | undefined;
  #isWorking = true;

  constructor(settings: InboxSettings, plan: Plan, jobs: readonly Job[], signal: AbortSignal | undefined) {
    this.#settings = settings;
    this.#plan = plan;
    this.#jobs = jobs;
    this.#signal = signal;
    this.#items = jobs.flatMap(({ items }) => items.filter(isOpen));
  }

  /** Resolves to true if each job needs a round of its own. */
  async run(): Promise<boolean> {
    if (this.#items.length === 0) return false;
    await this.#claim(this.#items, isOpen).catch((error) => this.#giveUp(this.#items, error));
    const claimed = this.#items.filter(isClaimed);
    // A redelivered event may end the process again. With a round for each job, only the events of one job are leased at that time:
    // no other event is repeated or gets an attempt counted, and another receiver can handle the other events.
    if (claimed.some(({ attempt }) => attempt > 1) && this.#jobs.filter(hasClaimed).length > 1) {
      setState(claimed, 'unclaimed');
      if (!(await this.#tryRelease(claimed))) setState(claimed, 'unavailable');
      return true;
    }
    if (claimed.length > 0) {
      this.#renewTimer.set(systemClock.now() + this.#settings.leaseMs / 3, false);
      const unsubscribe = onAbort(this.#signal, () => this.#interrupt());
      for (const job of this.#jobs) await this.#handle(job);
      await this.#commitUntilDone();
      unsubscribe();
    }
    this.#isWorking = false;
    this.#renewTimer.clear();
    this.#leaseTimer.clear();
    const released = this.#releaseUndone();
    // Do not wait for a store that may be down.
    if (!isStoreDown(this.#items)) await released;
    return false;
  }

  async #handle(job: Job): Promise<void> {
    if (!hasClaimed(job)) return;
    await this.#ensureLeases();
    const { maxAttempts } = this.#settings;
    // An attempt is counted for every event of a webhook, also for those whose callback was never called. So an event may be
    // exhausted although the process died each time in the callback of an earlier event. Therefore only the first job with
    // exhausted events goes to `onDeadLetter` without a call. The callback gets the exhausted events of later jobs once more.
    // An event that another receiver holds counts as exhausted, because it may be.
    const isExhausted = ({ attempt }: WorkItem) => attempt > maxAttempts;
    const isFirst = (item: WorkItem) =>
      item === this.#plan.items.find((other) => isExhausted(other) || other.state === 'busy');
    const exhausted = job.items.filter((item) => isClaimed(item) && isExhausted(item));
    const uncalled = exhausted.length > 0 && job.items.some(isFirst) ? exhausted : [];
    for (const item of uncalled) {
      const message = `The callback was not called, because it would be attempt ${item.attempt}, and \`maxAttempts\` is ${maxAttempts}`;
      await this.#deadLetter(item, new TrackingError(message));
    }
    // Leave out items that another receiver took over, and those whose lease could not be renewed.
    const items = job.items.filter((item) => isClaimed(item) && !uncalled.includes(item));
    if (items.length === 0) return;
    const state = await this.#call(items, 'handled', (context) => job.call(items, context));
    if (state === undefined) return;
    for (const item of items.filter(isClaimed)) {
      if (state === 'failed' && item.attempt >= maxAttempts) await this.#deadLetter(item, item.error);
      else item.state = state;
    }
  }

  async #deadLetter(item: WorkItem, error: unknown): Promise<void> {
    const { onDeadLetter } = this.#settings;
    // Renew the lease first. Otherwise two receivers could report the same dead letter.
    await this.#ensureLeases();
    if (!isClaimed(item) || onDeadLetter === undefined) return;
    // After an abort no callback is called any more. The next delivery gives the event to `onDeadLetter`.
    if (this.#signal?.aborted) return setState([item], 'failed');
    const { event, message, key } = item;
    const state = await this.#call([item], 'deadLettered', (context) =>
      onDeadLetter(event, { ...context, message, key, error }),
    );
    if (state !== undefined && isClaimed(item)) item.state = state;
  }

  /** Calls a callback. Resolves to undefined if it succeeded. A callback that was cut short by us has not failed. */
  async #call(
    items: readonly WorkItem[],
    doneState: 'handled' | 'deadLettered',
    callback: (context: CallbackContext) => unknown,
  ): Promise<'failed' | 'interrupted' | 'unavailable' | undefined> {
    const { callbackTimeoutMs, onError } = this.#settings;
    const { controller, unsubscribe } = linkedController(this.#signal);
    const { signal } = controller;
    const attempt = items.reduce((max, item) => Math.max(max, item.attempt), 1);
    const call = { items, controller, hasLostLease: false };
    this.#callUnderWay = call;
    try {
      await callWithTimeout(() => callback({ attempt, signal }), callbackTimeoutMs, controller);
    } catch (error) {
      // Items that another receiver has taken over meanwhile did not fail here.
      for (const item of items) if (isClaimed(item)) item.error = error;
      if (this.#signal?.aborted) return 'interrupted';
      if (call.hasLostLease) return 'unavailable';
      onError(error, doneState === 'handled' ? 'callback' : 'deadLetter', getKeys(items));
      return 'failed';
    } finally {
      this.#callUnderWay = undefined;
      unsubscribe();
    }
    // The items are committed even if another receiver took them over.
    setState(items, doneState);
    for (const item of items) this.#uncommitted.add(item);
    return undefined;
  }

  /** Leases all items, and updates those that pass `canUpdate`. The others have their outcome already. */
  async #claim(items: readonly WorkItem[], canUpdate: (item: WorkItem) => boolean): Promise<void> {
    const { store, leaseMs } = this.#settings;
    const keys = getKeys(items);
    const claimedAt = systemClock.now();
    let claims: readonly Claim[];
    try {
      claims = checkClaims(
        await this.#limit(async () => store.claim(keys, { token: this.#token, leaseMs })),
        keys.length,
      );
    } catch (error) {
      if (error instanceof StoreTimeoutError) this.#lateClaims.push(error.lateReply);
      throw error;
    }
    this.#leaseEndsAt = claimedAt + leaseMs;
    for (const [index, item] of items.entries()) {
      const claim = claims[index];
      if (claim !== undefined && canUpdate(item)) applyClaim(item, claim);
    }
  }

  /** Shares a renewal that is under way. Handled items stay leased until they are committed, so they are renewed, too. */
  #renew(): Promise<void> {
    const renew = async () => {
      const items = this.#items.filter((item) => isClaimed(item) || this.#uncommitted.has(item));
      if (items.length > 0) await this.#claim(items, isClaimed);
      if (this.#callUnderWay?.items.every(isClaimed) === false) {
        this.#abortCall('another process now handles the event');
      }
    };
    this.#renewal ??= renew().finally(() => {
      this.#renewal = undefined;
    });
    return this.#renewal;
  }

  /** Renews leases that are half over, as after a suspension of the machine. */
  async #ensureLeases(): Promise<void> {
    if (systemClock.now() < this.#leaseEndsAt - this.#settings.leaseMs / 2) return;
    await this.#renew().catch((error) => this.#giveUp(this.#items.filter(isClaimed), error));
  }

  /** Gives up all items at once. Otherwise each of them would wait for the store again. */
  #giveUp(items: readonly WorkItem[], error: unknown): void {
    this.#settings.onError(error, 'claim', getKeys(items));
    setState(items, 'unavailable');
  }

  async #commitAndRenew(): Promise<void> {
    this.#leaseTimer.set(this.#leaseEndsAt, false);
    await this.#commit();
    await this.#renew().catch((error) => {
      this.#settings.onError(error, 'renew', getKeys(this.#items.filter(isClaimed)));
    });
    if (this.#isWorking) this.#renewTimer.set(systemClock.now() + this.#settings.leaseMs / 3, false);
  }

  #checkLease(): void {
    // The lease may have been renewed since the timer was set. This timer alone must not keep the process alive.
    if (systemClock.now() < this.#leaseEndsAt) this.#leaseTimer.set(this.#leaseEndsAt, false);
    else this.#abortCall('another process may now handle the event, too');
  }

  #abortCall(reason: string): void {
    const call = this.#callUnderWay;
    if (call === undefined || call.controller.signal.aborted) return;
    call.hasLostLease = true;
    const lease = `The lease of the event was not renewed in time (\`leaseMs\` is ${this.#settings.leaseMs})`;
    call.controller.abort(
      new TrackingError(
        `${lease}, and ${reason}; stop this callback, and raise \`leaseMs\` if this happens often`,
      ),
    );
  }

  /** At a shutdown the process may end at any moment, so commit what is handled, and release what is not called any more. */
  #interrupt(): void {
    const isUncalled = (item: WorkItem) =>
      isClaimed(item) && item.error === undefined && this.#callUnderWay?.items.includes(item) !== true;
    const uncalled = this.#items.filter(isUncalled);
    setState(uncalled, 'interrupted');
    void this.#commit();
    void this.#tryRelease(uncalled);
  }

  /** Tries to commit for ten seconds. Without the commit, a redelivery would repeat finished work. */
  async #commitUntilDone(): Promise<void> {
    let giveUpAt: number | undefined;
    for (let index = 0; !(await this.#commit()); index += 1) {
      giveUpAt ??= systemClock.now() + COMMIT_TRIES_MS;
      const remainingMs = giveUpAt - systemClock.now();
      if (remainingMs <= 0) return;
      await sleep(Math.min(FIRST_PAUSE_MS * 2 ** index, MAX_COMMIT_PAUSE_MS, remainingMs));
    }
  }

  async #commit(): Promise<boolean> {
    const items = [...this.#uncommitted];
    if (items.length === 0) return true;
    const { store, retainMs } = this.#settings;
    const keys = getKeys(items);
    try {
      await this.#limit(async () => store.commit(keys, { retainMs }));
    } catch (error) {
      this.#settings.onError(error, 'commit', keys);
      return false;
    }
    for (const item of items) this.#uncommitted.delete(item);
    return true;
  }

  /** Releases the items that are not done. The attempt of a failed item counts; the attempt of any other item does not count. */
  async #releaseUndone(): Promise<void> {
    const failed = this.#items.filter(({ state }) => state === 'failed');
    const others = this.#items.filter(({ state }) => state === 'interrupted' || state === 'unavailable');
    await Promise.all([this.#tryRelease(failed, false), this.#tryRelease(others)]);
    // A late claim can reach the store after this release. It then leases the keys again and counts one more attempt. So release
    // the keys again after the late claim, and take this attempt back.
    const releaseAgain = () => this.#release([...failed, ...others]);
    for (const late of this.#lateClaims) void late.then(releaseAgain).catch(() => {});
  }

  async #tryRelease(items: readonly WorkItem[], uncounted = true): Promise<boolean> {
    try {
      await this.#release(items, uncounted);
      return true;
    } catch (error) {
      // If the store is down, its failed claim was reported already.
      if (!isStoreDown(this.#items)) this.#settings.onError(error, 'release', getKeys(items));
      return false;
    }
  }

  async #release(items: readonly WorkItem[], uncounted = true): Promise<void> {
    if (items.length === 0) return;
    // Wait for a running renewal before releasing.
    await this.#renewal?.catch(() => {});
    const options = { token: this.#token, uncounted };
    await this.#limit(async () => this.#settings.store.release(getKeys(items), options));
  }

  /** Limits the time of a store that does not limit its calls itself. */
  #limit<Result>(call: () => Promise<Result>): Promise<Result> {
    const { ownsTimeLimit, storeTimeoutMs } = this.#settings;
    return ownsTimeLimit ? call() : callStore(call, storeTimeoutMs);
  }
}
