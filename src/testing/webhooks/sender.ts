import * as z from 'zod';
import { callGuarded } from '../../common/callbacks.ts';
import { checkOptions } from '../../common/check-options.ts';
import { sleep } from '../../common/clock.ts';
import {
  countOption,
  delayOption,
  functionOption,
  hasMethods,
  type OptionShape,
  option,
  timeoutOption,
} from '../../common/option-schemas.ts';
import { withTimeLimit } from '../../common/time-limit.ts';
import { quoteUrl } from '../../common/urls.ts';
import { saysFailure, WEBHOOK_TIMEOUT_MS } from '../../common/webhook-rules.ts';
import { formatError, resolveLogger } from '../../observability/logger.ts';
import type { FakeTrackingService } from '../fake-tracking-service.ts';
import { HTTP_URL, isHttpUrl, seedOption, speedOption, switchOption } from '../options.ts';
import { jsonOrText } from '../service/http.ts';
import { seededRandom } from '../shipments/shipment.ts';
import type { PushAttempt, QueuedPush } from './queue.ts';

/** The service stops after this many attempts. With these waits, they take 5.9 days in all (docs/service.md 8.5). */
const MAX_ATTEMPTS = 20;
const FIRST_WAIT_MS = 12 * 60_000;
const WAIT_GROWTH = 1.6;
const MAX_WAIT_MS = 12 * 3_600_000;
/** At this speed, the 5.9 days take half a minute, which is enough to restart a receiver. */
const DEFAULT_SPEED = 17_000;
const FUNCTION_URL = 'http://webhook.test/';

/** The receiver of webhooks: a URL, or a function with the shape of a Fetch API handler. */
export type WebhookTarget = string | URL | ((request: Request) => Response | Promise<Response>);

/** Options of `createWebhookSender`. */
export interface WebhookSenderOptions {
  /** Where to push: a URL, or a handler such as `createWebhookHandler` makes. */
  readonly target: WebhookTarget;
  /** The fake whose webhooks are sent. */
  readonly fake: Pick<FakeTrackingService, 'webhooks'>;
  /** Sent as `Authorization: Bearer <secret>`. Default: none. */
  readonly secret?: string | undefined;
  /** How many duplicates of each request are sent. Default 0. */
  readonly duplicates?: number | undefined;
  /** True to send the webhooks that are due at the same time in a random order that the seed decides. Default false: in order. */
  readonly shuffle?: boolean | undefined;
  /** Decides the order of `shuffle`. Default 1. */
  readonly seed?: string | number | undefined;
  /** Requests under way at the same time. Default 1. */
  readonly concurrency?: number | undefined;
  /**
   * `true` (or options) sends a request again until the receiver accepts it, as the service does: up to 20 attempts in six days,
   * with waits that grow by 1.6 from 12 minutes to 12 hours. Default false.
   * `speed`, at least 1, divides these waits. Default 17000: all waits together take half a minute. With 1, use fake timers.
   * `maxAttempts` is the number of attempts, default 20.
   */
  readonly until2xx?:
    | boolean
    | { readonly maxAttempts?: number | undefined; readonly speed?: number | undefined }
    | undefined;
  /** Maximum number of items of `trackings[]` in a request; a proof of delivery is always sent alone. Default 1. */
  readonly itemsPerRequest?: number | undefined;
  /** Milliseconds until a request without a response counts as failed. Default 15000. */
  readonly timeoutMs?: number | undefined;
  /** Called after each request with the result and its webhooks. An error that it throws goes to the console. */
  readonly onSent?: ((sent: SentWebhook, pushes: readonly QueuedPush[]) => void) | undefined;
}

/** One request to the receiver. */
export interface SentWebhook {
  /** Counts from 1; above 1 when the request was not accepted before. */
  readonly attempt: number;
  /** The receiver's status; `null` when the receiver threw, could not be reached or took too long. */
  readonly status: number | null;
  /** True for any 2xx whose JSON does not say `success: false`, as a boolean or as text (docs/service.md 8.11). */
  readonly succeeded: boolean;
}

/** The result of one run that sends queued pushes. */
export interface WebhookSenderReport {
  /** Items that were taken off the queue. */
  readonly items: number;
  /** Items that were accepted at least once. */
  readonly accepted: number;
  /** Items that were not accepted in any attempt; the sender does not send them again. */
  readonly lost: number;
  /** Every request in the order of the responses, including duplicates and redeliveries. */
  readonly sent: readonly SentWebhook[];
}

/** Sends the webhooks that a fake queued, as the service would. */
export interface WebhookSender {
  /**
   * Sends everything that waits now or is queued meanwhile.
   *
   * @returns the result, once nothing is left to send
   */
  flush(): Promise<WebhookSenderReport>;
  /**
   * Checks the receiver with a `HEAD` request, as the service may do (docs/service.md 8.7).
   *
   * @returns true when it responds with 200
   */
  probe(): Promise<boolean>;
  /**
   * Sends everything that waits now or is queued later.
   *
   * @param options - `everyMs`: how often to check the queue, in milliseconds, default 100
   * @returns a function that stops sending, and resolves when the last request and its redeliveries are over
   * @throws ConfigurationError for an invalid option
   */
  start(options?: { readonly everyMs?: number | undefined }): () => Promise<void>;
}

const redeliveryOptions = {
  maxAttempts: countOption(1).default(MAX_ATTEMPTS),
  speed: speedOption.default(DEFAULT_SPEED),
};

const senderOptions = z.strictObject({
  target: option<WebhookTarget>(
    `a function or ${HTTP_URL}`,
    (value) => isHttpUrl(value) || typeof value === 'function',
    quoteUrl,
  ),
  fake: option<WebhookSenderOptions['fake']>('a fake tracking service', (value) =>
    hasMethods(Object(value).webhooks, 'take'),
  ),
  secret: option<string>('a non-empty string', (value) => typeof value === 'string' && !!value).optional(),
  duplicates: countOption(0).default(0),
  shuffle: z.boolean().default(false),
  seed: seedOption.default(1),
  concurrency: countOption(1).default(1),
  until2xx: switchOption(redeliveryOptions).prefault(false),
  itemsPerRequest: countOption(1).default(1),
  timeoutMs: delayOption.default(WEBHOOK_TIMEOUT_MS),
  onSent: functionOption<NonNullable<WebhookSenderOptions['onSent']>>().optional(),
} satisfies OptionShape<WebhookSenderOptions>);

const startOptions = z.strictObject({ everyMs: timeoutOption.default(100) });

type PushResult = Pick<PushAttempt, 'status' | 'succeeded' | 'responseBody' | 'responseHeaders'>;

type Receiver = Pick<z.output<typeof senderOptions>, 'target' | 'secret' | 'timeoutMs'>;

async function send({ target, secret }: Receiver, signal: AbortSignal, body?: string): Promise<PushResult> {
  const request = new Request(typeof target === 'function' ? FUNCTION_URL : target, {
    method: body === undefined ? 'HEAD' : 'POST',
    headers: {
      ...(secret !== undefined && { authorization: `Bearer ${secret}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    body: body ?? null,
    signal,
  });
  const response = await (typeof target === 'function' ? target(request) : globalThis.fetch(request));
  const text = await response.text();
  const { status, headers } = response;
  const responseBody = text === '' ? null : jsonOrText(text);
  const succeeded = response.ok && !saysFailure(responseBody);
  return { status, succeeded, responseBody, responseHeaders: Object.fromEntries(headers) };
}

/** Sends one request to the receiver, or a probe if there is no body. It never rejects. */
async function sendToReceiver(receiver: Receiver, body?: string): Promise<PushResult> {
  const controller = new AbortController();
  // Waiting for the abort alone is not enough: a receiver that is a function may ignore the signal.
  const abort = () => {
    controller.abort();
    return new Error('The receiver took too long');
  };
  try {
    return await withTimeLimit(() => send(receiver, controller.signal, body), receiver.timeoutMs, abort);
  } catch {
    return { status: null, succeeded: false, responseBody: null, responseHeaders: {} };
  }
}

/** Puts pushes of events into groups of at most `size`. A proof of delivery is never grouped (docs/service.md 8.6). */
function groupPushes(pushes: readonly QueuedPush[], size: number): (readonly QueuedPush[])[] {
  const groups: QueuedPush[][] = [];
  const isProof = ({ item }: QueuedPush) => !('events' in item);
  for (const push of pushes) {
    const group = groups.at(-1);
    if (group === undefined || group.length === size || [...group, push].some(isProof)) groups.push([push]);
    else group.push(push);
  }
  return groups;
}

function reportOnSentFailure(error: unknown): void {
  resolveLogger().error(`\`onSent\` of the webhook sender failed: ${formatError(error)}`, { err: error });
}

/**
 * Sends webhooks as the service does: takes the pushes that a fake queued and sends them to your receiver,
 * with the duplicates, the disorder and the redeliveries that the real service is known for.
 *
 * @param options - see `WebhookSenderOptions`; `target` and `fake` are required
 * @returns the sender
 * @throws ConfigurationError when an option is invalid
 * @example
 * const sender = createWebhookSender({ target: handler, secret, fake, duplicates: 2, shuffle: true, until2xx: true });
 * await client.trackers.create({ trackingNumber: 'RR123456785CN' });
 * fake.shipment('RR123456785CN').deliver();
 * const report = await sender.flush(); // { items: 1, accepted: 1, lost: 0, sent: [three requests] }
 */
export function createWebhookSender(options: WebhookSenderOptions): WebhookSender {
  const { target, secret, timeoutMs, fake, until2xx, duplicates, ...rest } = checkOptions(
    senderOptions,
    options,
  );
  const receiver = { target, secret, timeoutMs };
  const url = typeof target === 'function' ? null : String(target);
  const { maxAttempts, speed } = until2xx || { maxAttempts: 1, speed: 1 };
  const random = seededRandom(rest.seed);
  let freePlaces = rest.concurrency;
  const waiting: (() => void)[] = [];
  /** How many of `waiting` have got a place. They are removed together when none waits, because `shift` moves the whole array. */
  let served = 0;

  function passPlaceOn(): void {
    const next = waiting[served];
    if (next === undefined) {
      freePlaces += 1;
      served = 0;
      waiting.length = 0;
    } else {
      served += 1;
      next();
    }
  }

  async function withinConcurrency<Result>(run: () => Promise<Result>): Promise<Result> {
    if (freePlaces > 0) freePlaces -= 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await run();
    } finally {
      passPlaceOn();
    }
  }

  /** Sends some pushes in one request until it is accepted. Returns false when it is given up. */
  async function sendUntilAccepted(pushes: readonly QueuedPush[], sent: SentWebhook[]): Promise<boolean> {
    const requestBody = { trackings: pushes.map(({ item }) => item) };
    const sendOnce = async (attempt: number) => {
      const result = await sendToReceiver(receiver, JSON.stringify(requestBody));
      const request = { attempt, status: result.status, succeeded: result.succeeded };
      sent.push(request);
      fake.webhooks.record(pushes, { ...result, url, requestBody });
      callGuarded(() => rest.onSent?.(request, pushes), reportOnSentFailure);
      return request;
    };
    for (let attempt = 1; ; attempt += 1) {
      const { succeeded } = await withinConcurrency(() => sendOnce(attempt));
      if (succeeded || attempt === maxAttempts) return succeeded;
      await sleep(Math.min(FIRST_WAIT_MS * WAIT_GROWTH ** (attempt - 1), MAX_WAIT_MS) / speed);
    }
  }

  /** Sends what waits now, and adds each request to `sent`. Returns how many items there were and how many were accepted. */
  async function sendQueued(sent: SentWebhook[]) {
    // Read `fake.webhooks` each time: a reset of the fake makes a new queue.
    const pushes = fake.webhooks.take();
    const jobs: { readonly group: readonly QueuedPush[]; readonly order: number }[] = [];
    for (const group of groupPushes(pushes, rest.itemsPerRequest))
      for (let copy = 0; copy <= duplicates; copy += 1)
        jobs.push({ group, order: rest.shuffle ? random() : 0 });
    jobs.sort((a, b) => a.order - b.order);
    const accepted = new Set<QueuedPush>();
    const sendGroup = async (group: readonly QueuedPush[]) => {
      if (await sendUntilAccepted(group, sent)) for (const push of group) accepted.add(push);
    };
    await Promise.all(jobs.map(({ group }) => sendGroup(group)));
    return { items: pushes.length, accepted: accepted.size };
  }

  return {
    async flush() {
      const sent: SentWebhook[] = [];
      let { items, accepted } = await sendQueued(sent);
      while (fake.webhooks.pending.length > 0) {
        const next = await sendQueued(sent);
        items += next.items;
        accepted += next.accepted;
      }
      return { items, accepted, lost: items - accepted, sent };
    },
    probe: async () => (await sendToReceiver(receiver)).status === 200,
    start(options = {}) {
      const { everyMs } = checkOptions(startOptions, options);
      // Runs may overlap, so that a push that waits for its redelivery does not hold up later pushes.
      const runs = new Set<Promise<unknown>>();
      const timer = globalThis.setInterval(() => {
        // Do not call `flush` here: under a steady stream of pushes it would never end.
        const current = sendQueued([]).finally(() => runs.delete(current));
        runs.add(current);
      }, everyMs);
      return async () => {
        globalThis.clearInterval(timer);
        await Promise.all(runs);
      };
    },
  };
}
