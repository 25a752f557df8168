import * as z from 'zod';
import { LazyController } from '../common/abort.ts';
import { checkOptions } from '../common/check-options.ts';
import { sleep, systemClock } from '../common/clock.ts';
import { isDate } from '../common/foreign.ts';
import { delayOption, isAbortSignal, type OptionShape, option } from '../common/option-schemas.ts';
import { withTimeLimit } from '../common/time-limit.ts';
import { TrackingError } from '../errors.ts';
import type { Tracking } from '../schemas/tracking.ts';
import type { WebhookHistory } from '../schemas/webhook.ts';
import { readHistory } from './history.ts';
import {
  type CallbackContext,
  checkCallbacks,
  type EventCallback,
  type InboxSettings,
  type ProcessOptions,
  resolveInboxOptions,
  type WebhookCallbacks,
  type WebhookInboxOptions,
} from './inbox-options.ts';
import {
  buildReport,
  getKeys,
  type ItemState,
  isClaimed,
  isOpen,
  isStoreDown,
  type Job,
  type Plan,
  planJobs,
  select,
  setState,
  type WebhookFailure,
  type WebhookReport,
  type WorkItem,
} from './items.ts';
import { Lease } from './lease.ts';
import { buildItemError, decodeBody, getField, type ItemIssues, ItemReader } from './parse.ts';
import { isReceivedBody } from './request.ts';
import { type PolledResults, readResults, refuseResults } from './results.ts';

const FIRST_PAUSE_MS = 50;
const MAX_BUSY_PAUSE_MS = 400;
const CALLS_PER_YIELD = 100;

/**
 * Handles every event once, even if it is delivered several times or to several receivers. If a callback fails or the process
 * crashes, the sender delivers the event again (docs/service.md 8.5).
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
   * @param body - text, UTF-8 bytes, or JSON that is parsed already; the report is the same for each form
   * @param callbacks - a function for every new event, or `WebhookCallbacks`
   * @param options - see `ProcessOptions`
   * @returns the report; only `done` and `rejected` leave nothing to redeliver
   * @throws WebhookParseError when the body is not UTF-8 JSON, or when it is not a webhook but the value for `processResults`;
   * ConfigurationError when callbacks or options are invalid
   */
  async process(
    body: unknown,
    callbacks: EventCallback | WebhookCallbacks,
    options?: ProcessOptions,
  ): Promise<WebhookReport> {
    return this.#run(callbacks, options, (reader) => {
      const decoded = decodeBody(body);
      if (!isReceivedBody(body)) refuseResults(decoded);
      reader.readBody(decoded);
    });
  }

  /**
   * Handles the new events of tracking results, oldest first. An event is handled once, even if a webhook brings it, too. All events
   * of an update's results are handled, not only its `newEvents`, because an event whose callback failed is new in one update only.
   *
   * @param results - the result of `trackers.results` or `trackers.track`, an update of a poll, or a list of these; without events,
   * there is nothing to do
   * @param callbacks - a function for every new event, or `WebhookCallbacks`
   * @param options - see `ProcessOptions`
   * @returns the report; if its outcome is neither `done` nor `rejected`, work is left: pass the results again later, or pass later
   * results of the tracker
   * @throws WebhookParseError when the results have no tracker, as those of `tracking.search`, or are no results at all;
   * ConfigurationError when callbacks or options are invalid; the `error` of an update whose poll failed. No event is handled then,
   * also of a list
   * @example
   * await inbox.processResults(await client.trackers.results(trackerId), onEvent);
   */
  async processResults(
    results: Tracking | PolledResults | readonly (Tracking | PolledResults)[],
    callbacks: EventCallback | WebhookCallbacks,
    options?: ProcessOptions,
  ): Promise<WebhookReport> {
    return this.#run(callbacks, options, (reader, receivedAt) => readResults(reader, results, receivedAt));
  }

  /**
   * Handles the pushes of a webhook history again, oldest first. The keys are those of the first delivery, so events that were
   * handled are duplicates. If a push names no tracker, its tracker is that of the history's `metadata`. If it has no `generatedAt`,
   * it gets its `pushTimestamp` (docs/service.md 8.9).
   *
   * @param history - the result of `trackers.webhookHistory`
   * @param callbacks - a function for every new event, or `WebhookCallbacks`
   * @param options - see `ProcessOptions`
   * @returns one report for all pushes; the `index` of a rejected item is the position of its push in `webhooks`
   * @throws WebhookParseError when `history` is not a webhook history; ConfigurationError when callbacks or options are invalid
   * @example
   * await inbox.processHistory(await client.trackers.webhookHistory(trackerId), onEvent);
   */
  async processHistory(
    history: WebhookHistory,
    callbacks: EventCallback | WebhookCallbacks,
    options?: ProcessOptions,
  ): Promise<WebhookReport> {
    return this.#run(callbacks, options, (reader) => readHistory(reader, history));
  }

  /** Handles what `read` gives to the reader. */
  async #run(
    callbacks: EventCallback | WebhookCallbacks,
    options: ProcessOptions = {},
    read: (reader: ItemReader, receivedAt: Date | undefined) => void,
  ): Promise<WebhookReport> {
    const settings = this.#settings;
    const checked = checkCallbacks(callbacks);
    const { busyTimeoutMs, signal, receivedAt, account } = checkOptions(processOptions, options);
    const giveUpAt = systemClock.now() + busyTimeoutMs;
    const parsed = new ItemReader(account);
    read(parsed, receivedAt);
    reportIssues(settings, parsed);
    const plan = planJobs(parsed.messages, checked, account);
    const { jobs, items } = plan;
    let isDown = false;
    const canGoOn = () => signal?.aborted !== true && !isDown;
    const yieldSometimes = countToYield();
    // Each round tries the open jobs once. More rounds follow while a tracker is busy, and then for the events that were put off.
    let isLastTurn = false;
    for (let tries = 0; items.some(isOpen) && canGoOn(); tries += 1) {
      const busyTrackers = new Set<string>();
      for (const job of jobs) {
        // The later jobs of a tracker wait for its busy job. Otherwise the callbacks of two deliveries would overlap.
        if (!job.items.some(isOpen) || busyTrackers.has(job.tracker) || !canGoOn()) continue;
        await yieldSometimes();
        await this.#handle(job, isLastTurn, signal);
        if (select(job.items, 'busy').length > 0) busyTrackers.add(job.tracker);
        isDown ||= isStoreDown(job.items);
      }
      if (busyTrackers.size === 0) {
        // All other jobs are done, so it is the turn of the events that were put off.
        isLastTurn = true;
        setState(select(items, 'putOff'), 'waiting');
        continue;
      }
      const remainingMs = giveUpAt - systemClock.now();
      if (remainingMs <= 0 || !canGoOn()) break;
      const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** tries, MAX_BUSY_PAUSE_MS, remainingMs);
      await sleep(pauseMs, signal).catch(() => {});
    }
    const left = select(items, 'waiting', 'putOff');
    setState(left, signal?.aborted ? 'interrupted' : isDown ? 'unavailable' : 'busy');
    // If the store is down, the sender redelivers the whole webhook. Then leave `onOther` to that delivery.
    const { onOther } = isDown ? {} : checked;
    return buildReport(plan, parsed, await callOnOther(settings, onOther, plan, signal));
  }

  /** Claims a job, calls its callback, and commits or releases its items. */
  async #handle(job: Job, isLastTurn: boolean, signal: AbortSignal | undefined): Promise<void> {
    const lease = new Lease(this.#settings, job.items.filter(isOpen));
    try {
      await lease.claim();
      await this.#handleClaimed(lease, job, isLastTurn, signal);
    } finally {
      // Items are still claimed only after an unexpected error, for example if the signal itself throws.
      setState(lease.claimed, 'interrupted');
      await lease.release();
    }
  }

  async #handleClaimed(
    lease: Lease,
    job: Job,
    isLastTurn: boolean,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const { maxAttempts, onDeadLetter } = this.#settings;
    const exhausted = lease.claimed.filter(({ attempt }) => attempt > maxAttempts);
    // An event with more than `maxAttempts` attempts may be the one that crashes the process. Without `onDeadLetter`, handle the
    // other events first; the calls to `#deadLetter` below then do nothing.
    if (onDeadLetter === undefined && !isLastTurn) setState(exhausted, 'putOff');
    for (const item of exhausted) {
      const message = `The callback was not called, because it would be attempt ${item.attempt}, and \`maxAttempts\` is ${maxAttempts}`;
      await this.#deadLetter(lease, item, new TrackingError(message), signal);
    }
    const items = lease.claimed;
    if (items.length > 0) {
      const state = await this.#call(lease, items, 'handled', (context) => job.call(items, context), signal);
      // After a success, no item is claimed any more.
      for (const item of lease.claimed) {
        if (state === 'failed' && item.attempt >= maxAttempts)
          await this.#deadLetter(lease, item, item.error, signal);
        if (isClaimed(item)) item.state = state;
      }
    }
  }

  /** Gives an item to `onDeadLetter`. The item stays claimed if `onDeadLetter` is not set or must not be called any more. */
  async #deadLetter(
    lease: Lease,
    item: WorkItem,
    error: unknown,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const { onDeadLetter } = this.#settings;
    if (onDeadLetter === undefined) return;
    // Without the lease, two receivers could report the same dead letter.
    if (!(await lease.ensure())) return setState(lease.claimed, 'unavailable');
    // After an abort no callback is called any more. The next delivery gives the event to `onDeadLetter`.
    if (!isClaimed(item) || signal?.aborted) return;
    const { event, message, key } = item;
    const callback = (context: CallbackContext) =>
      onDeadLetter(event, Object.assign(context, { message, key, error }));
    const state = await this.#call(lease, [item], 'deadLettered', callback, signal);
    if (isClaimed(item)) item.state = state;
  }

  /** Calls a callback. If it succeeds, commits the items. Resolves to the new state of the items that are still claimed. */
  async #call(
    lease: Lease,
    items: readonly WorkItem[],
    doneState: 'handled' | 'deadLettered',
    callback: (context: CallbackContext) => unknown,
    signal: AbortSignal | undefined,
  ): Promise<ItemState> {
    if (signal?.aborted) return 'interrupted';
    const { callbackTimeoutMs, onError } = this.#settings;
    const controller = new LazyController(signal);
    lease.watch(controller);
    const context = {
      attempt: items.reduce((max, item) => Math.max(max, item.attempt), 1),
      get signal() {
        return controller.signal;
      },
      account: items[0]?.account,
    };
    try {
      await callWithTimeout(() => callback(context), callbackTimeoutMs, controller);
    } catch (error) {
      for (const item of items) item.error = error;
      // A callback that was cut short by us has not failed.
      if (signal?.aborted) return 'interrupted';
      if (lease.isLost) return 'unavailable';
      onError(error, doneState === 'handled' ? 'callback' : 'deadLetter', getKeys(items));
      return 'failed';
    } finally {
      controller.unlink();
      lease.watch(undefined);
    }
    // The items are committed even if another receiver took them over.
    setState(items, doneState);
    await lease.commit(items);
    return doneState;
  }
}

const processOptions = z.strictObject({
  busyTimeoutMs: delayOption.default(8_000),
  signal: option<AbortSignal>('an AbortSignal', isAbortSignal).optional(),
  account: option<string>(
    'a text that is not empty',
    (value) => typeof value === 'string' && value !== '',
  ).optional(),
  receivedAt: option<Date>(
    'a valid Date',
    (value) => isDate(value) && !Number.isNaN(value.getTime()),
  ).optional(),
} satisfies OptionShape<ProcessOptions>);

/**
 * Returns a function that lets due timers fire at every hundredth call. A store in memory and a callback that does nothing never
 * wait, so a long webhook would hold up the response at the deadline and every other request.
 */
function countToYield(): () => Promise<void> {
  let calls = 0;
  return async () => {
    calls += 1;
    if (calls % CALLS_PER_YIELD === 0) await sleep(0);
  };
}

const REJECTED = 'is invalid, and the invalid part is not handled';
const MISMATCHED = 'is handled, although some fields have an unexpected type';

function reportIssues(
  { onError, knownMismatches }: InboxSettings,
  { rejected, mismatched, nameItem }: ItemReader,
): void {
  const report = (problem: string, item: ItemIssues) =>
    onError(buildItemError(nameItem(item.index), problem, item), 'parse', []);
  for (const item of rejected) report(REJECTED, item);
  for (const { index, issues } of mismatched) {
    const news = issues.filter((issue) => !knownMismatches.has(getField(issue)));
    for (const issue of news) knownMismatches.add(getField(issue));
    if (news.length > 0) report(MISMATCHED, { index, issues: news });
  }
}

async function callOnOther(
  { callbackTimeoutMs, onError }: InboxSettings,
  onOther: WebhookCallbacks['onOther'],
  { others, account }: Plan,
  signal: AbortSignal | undefined,
) {
  const failures: WebhookFailure[] = [];
  if (onOther === undefined) return { failures, isInterrupted: false };
  const context = account === undefined ? [] : [{ account }];
  const yieldSometimes = countToYield();
  for (const message of others) {
    await yieldSometimes();
    // The sender must redeliver a message that no callback saw.
    if (signal?.aborted) return { failures, isInterrupted: true };
    try {
      await callWithTimeout(() => onOther(message, ...context), callbackTimeoutMs);
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
  controller?: LazyController,
): Promise<void> {
  const returned = callback();
  // A callback that returns no promise has finished already, so it needs no timer.
  if (typeof Object(returned).then !== 'function') return;
  const buildError = () => {
    const message = `The callback did not finish within ${timeoutMs} ms (\`callbackTimeoutMs\`)`;
    const error = new TrackingError(message);
    controller?.abort(error);
    return error;
  };
  await withTimeLimit(async () => returned, timeoutMs, buildError);
}
