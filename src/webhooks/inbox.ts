// Specification: service.md 6; public contract
import { z } from 'zod';
import { checkOptions, delayOption, type OptionShape } from '../common/option-checks.ts';
import { type EventHandler, planWork, toCallbacks, type WebhookCallbacks } from './callbacks.ts';
import {
  type InboxSettings,
  resolveInboxOptions,
  type StoreInboxSettings,
  type WebhookInboxOptions,
} from './options.ts';
import { parseWebhook } from './parse.ts';
import type { ProcessOptions, WebhookProcessor, WebhookReport } from './report.ts';
import { WebhookRun } from './run.ts';
import { StoreSource, type WorkSource } from './session.ts';

const processOptions = z.strictObject({
  busyBudgetMs: delayOption.optional(),
  signal: z.custom<AbortSignal>().optional(),
} satisfies OptionShape<ProcessOptions>);

/**
 * Handles every event of the webhooks once, however often they are delivered and to however many receivers. What fails
 * or is cut off by a crash is left to the sender, which delivers it again.
 *
 * @example
 * const inbox = new WebhookInbox({ store: new MemoryDedupeStore() });
 * const report = await inbox.process(body, async (event, { delivery }) => {
 *   await saveEvent(delivery.tracker.trackerId, event);
 * });
 * // report.outcome: 'done'; answer with 200 only then
 */
export class WebhookInbox implements WebhookProcessor {
  readonly #settings: StoreInboxSettings;
  readonly #source: StoreSource;

  /**
   * @param options - see `WebhookInboxOptions`
   * @throws ConfigurationError when an option is missing or makes no sense
   */
  constructor(options: WebhookInboxOptions) {
    this.#settings = resolveInboxOptions(options);
    this.#source = new StoreSource(this.#settings);
  }

  /**
   * Handles what is new in a webhook body, oldest first, and reports on all of it.
   * A callback that fails does not stop the others; its events are given back for a redelivery.
   *
   * @param payload - the body: text, UTF-8 bytes, or JSON that is parsed already
   * @param callbacks - a function for every new event, or `WebhookCallbacks`
   * @param options - see `ProcessOptions`
   * @returns what became of it; only the outcomes `done` and `rejected` leave nothing to redeliver
   * @throws WebhookParseError when the body is not UTF-8 JSON; ConfigurationError when the callbacks or the options make no sense
   */
  async process(
    payload: unknown,
    callbacks: EventHandler | WebhookCallbacks,
    options: ProcessOptions = {},
  ): Promise<WebhookReport> {
    return processWebhook(this.#settings, this.#source, payload, callbacks, options);
  }
}

/** What every kind of inbox does with a webhook; `source` sees to it that each event is handled once. */
export async function processWebhook<Extra extends object>(
  settings: InboxSettings<Extra>,
  source: WorkSource<Extra>,
  payload: unknown,
  callbacks: EventHandler<Extra> | WebhookCallbacks<Extra>,
  options: ProcessOptions,
): Promise<WebhookReport> {
  const checked = toCallbacks(callbacks);
  const checkedOptions = checkOptions(processOptions, options);
  const { deliveries, duplicates, rejected, mismatched } = parseWebhook(payload);
  settings.flaws.report(rejected, mismatched);
  const run = new WebhookRun(settings, source, planWork(deliveries, checked), checkedOptions);
  return run.run(duplicates, rejected);
}
