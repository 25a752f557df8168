import { BodyReader } from './body-reader.ts';
import { type EventHandler, toCallbacks, type WebhookCallbacks } from './callbacks.ts';
import { type InboxSettings, resolveInboxOptions, type WebhookInboxOptions } from './inbox-options.ts';
import { InboxRun } from './inbox-run.ts';
import type { ProcessOptions, WebhookProcessor, WebhookReport } from './report.ts';
import { planWork } from './work-plan.ts';

/**
 * Handles every event of the webhooks once, however often they are delivered and to however many receivers. What fails
 * or is cut off by a crash is left to the sender, which delivers it again.
 *
 * @specification service.md 6; public contract
 * @example
 * const inbox = new WebhookInbox({ store: new MemoryDedupeStore() });
 * const report = await inbox.process(body, async (event, { delivery }) => {
 *   await saveEvent(delivery.tracker.trackerId, event);
 * });
 * // report.outcome: 'done'; answer with 200 only then
 */
export class WebhookInbox implements WebhookProcessor {
  readonly #settings: InboxSettings;
  readonly #bodies: BodyReader;

  /**
   * @param options - see `WebhookInboxOptions`
   * @throws ConfigurationError when an option is missing or makes no sense
   */
  constructor(options: WebhookInboxOptions) {
    this.#settings = resolveInboxOptions(options);
    this.#bodies = new BodyReader(this.#settings);
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
    const checked = toCallbacks(callbacks);
    const { deliveries, rejected } = this.#bodies.read(payload);
    return new InboxRun(this.#settings, options).run(planWork(deliveries, checked), checked, rejected);
  }
}
