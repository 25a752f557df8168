// Specification: service.md 6; public contract, "Webhooks"
import {
  checkBoolean,
  checkCount,
  checkDelayMs,
  checkFunction,
  checkKnownOptions,
  checkOneOf,
  refuseOption,
} from '../../common/option-checks.ts';
import { sleep } from '../../common/timing.ts';
import type { FakeTrackingService } from '../fake-tracking-service.ts';
import { checkSeed, seededRandom } from '../service/seeded.ts';
import { type DeliveryResult, deliver, type WebhookTarget } from './delivery.ts';
import type { WebhookPush } from './queue.ts';

/** The service gives up after as many attempts (public contract). */
const MAX_ATTEMPTS = 20;
/** The service waits about as long for an answer (public contract). */
const TIMEOUT_MS = 15_000;

/** Options of `createWebhookSender`. */
export interface WebhookSenderOptions {
  /** Where to push: a URL, or a handler such as `createWebhookHandler` makes. */
  readonly target: WebhookTarget;
  /** The fake whose queue is emptied. */
  readonly fake: Pick<FakeTrackingService, 'webhooks'>;
  /** Sent as `Authorization: Bearer <secret>`. Default: none. */
  readonly secret?: string;
  /** How many times more than once each request is sent. Default 0. */
  readonly duplicates?: number;
  /** True to send in an order that only the seed decides. Default false: in order. */
  readonly shuffle?: boolean;
  /** Decides the order of `shuffle`. Default 1. */
  readonly seed?: string | number;
  /** Requests under way at the same time. Default 1. */
  readonly concurrency?: number;
  /** True to repeat what was not accepted, up to 20 attempts; or how often and after how many milliseconds (default 100). Default false. */
  readonly until2xx?: boolean | { readonly maxAttempts?: number; readonly delayMs?: number };
  /** Items of `trackings[]` in a request. Default 1. */
  readonly itemsPerRequest?: number;
  /**
   * `flat` sends `{ trackerId, clientTrackerId, events }` (service.md 6), one item a request, and a proof of delivery, which that
   * shape does not have, enveloped. Default `enveloped`.
   */
  readonly shape?: 'enveloped' | 'flat';
  /** Milliseconds until an unanswered request counts as failed. Default 15000. */
  readonly timeoutMs?: number;
  /** Told of each request when it is answered, and of what it held. */
  readonly onSent?: (sent: SentWebhook, pushes: readonly WebhookPush[]) => void;
}

/** One request to the receiver. */
export interface SentWebhook extends DeliveryResult {
  /** The messages in it. */
  readonly messageIds: readonly string[];
  /** From 1; above 1 for repeats after a failure. */
  readonly attempt: number;
}

/** What became of one emptying of the queue. */
export interface WebhookSenderReport {
  /** Items that were taken off the queue. */
  readonly items: number;
  /** Items accepted at least once. */
  readonly accepted: number;
  /** Items never accepted: the service would have lost them by now. */
  readonly lost: number;
  /** Every request in the order of its response, duplicates and repeats included. */
  readonly sent: readonly SentWebhook[];
}

/** Pushes what a fake queued, as the service would. */
export interface WebhookSender {
  /**
   * Sends everything that waits now, and what comes meanwhile.
   *
   * @returns what became of it, when nothing is left
   */
  flush(): Promise<WebhookSenderReport>;
  /**
   * Asks with `HEAD` whether the receiver is there, as older documentation has it.
   *
   * @returns true when it answers with 200
   */
  probe(): Promise<boolean>;
  /**
   * Sends whatever is queued from now on.
   *
   * @param options - `everyMs`: how often to look, in milliseconds, default 100; `onReport`: told after each look that sent something
   * @returns stops it, and resolves when the last request is over
   * @throws nothing
   */
  start(options?: {
    readonly everyMs?: number;
    readonly onReport?: (report: WebhookSenderReport) => void;
  }): () => Promise<void>;
}

const OPTION_NAMES = [
  'target',
  'fake',
  'secret',
  'duplicates',
  'shuffle',
  'seed',
  'concurrency',
  'until2xx',
  'itemsPerRequest',
  'shape',
  'timeoutMs',
  'onSent',
] as const satisfies readonly (keyof WebhookSenderOptions)[];

function resolveRepeats(until2xx: NonNullable<WebhookSenderOptions['until2xx']>) {
  if (until2xx === false) return { maxAttempts: 1, delayMs: 0 };
  if (until2xx !== true) checkKnownOptions('until2xx', until2xx, ['maxAttempts', 'delayMs']);
  const { maxAttempts = MAX_ATTEMPTS, delayMs = 100 } = until2xx === true ? {} : until2xx;
  return {
    maxAttempts: checkCount('until2xx.maxAttempts', maxAttempts, 1),
    delayMs: checkDelayMs('until2xx.delayMs', delayMs),
  };
}

/** Checks the options and fills the defaults in; throws `ConfigurationError`. */
function resolveOptions(options: WebhookSenderOptions) {
  checkKnownOptions('options', options, OPTION_NAMES);
  const { target, fake, secret, onSent } = options;
  const isTarget = typeof target === 'function' || URL.canParse(target);
  if (!isTarget) refuseOption('target', 'a URL or a function', target);
  if (typeof fake?.webhooks?.take !== 'function') refuseOption('fake', 'a fake tracking service', fake);
  if (secret !== undefined && (typeof secret !== 'string' || secret === ''))
    refuseOption('secret', 'a non-empty string', secret);
  checkFunction('onSent', onSent);
  const seed = checkSeed(options.seed ?? 1);
  const isFlat = checkOneOf('shape', options.shape ?? 'enveloped', ['enveloped', 'flat']) === 'flat';
  return {
    receiver: { target, secret, timeoutMs: checkDelayMs('timeoutMs', options.timeoutMs ?? TIMEOUT_MS) },
    fake,
    duplicates: checkCount('duplicates', options.duplicates ?? 0, 0),
    random: checkBoolean('shuffle', options.shuffle ?? false) ? seededRandom(seed) : undefined,
    concurrency: checkCount('concurrency', options.concurrency ?? 1, 1),
    itemsPerRequest: isFlat ? 1 : checkCount('itemsPerRequest', options.itemsPerRequest ?? 1, 1),
    isFlat,
    onSent,
    ...resolveRepeats(options.until2xx ?? false),
  };
}

/** One body to send, once or more often. */
interface Job {
  readonly pushes: readonly WebhookPush[];
  readonly body: string;
}

/** The body of some pushes; a proof of delivery stays enveloped, for the flat shape does not have it. */
function bodyOf(pushes: readonly WebhookPush[], isFlat: boolean): string {
  const [item] = pushes.map((push) => push.item);
  if (!isFlat || item === undefined || !('events' in item))
    return JSON.stringify({ trackings: pushes.map((push) => push.item) });
  const { trackerId, clientTrackerId } = item.tracker;
  return JSON.stringify({ trackerId, clientTrackerId, events: item.events });
}

/** The same jobs in an order that only the random numbers decide. */
function shuffled(jobs: readonly Job[], random: () => number): Job[] {
  const placed = jobs.map((job) => ({ job, place: random() }));
  return placed.sort((one, other) => one.place - other.place).map(({ job }) => job);
}

/**
 * Plays the service's part in webhooks: takes what a fake queued and pushes it to your receiver,
 * with the duplicates, disorder and repeats that the real one is known for.
 *
 * @param options - see `WebhookSenderOptions`; `target` and `fake` are required
 * @returns the sender
 * @throws ConfigurationError when an option makes no sense
 * @example
 * const sender = createWebhookSender({ target: handler, secret, fake, duplicates: 2, shuffle: true, until2xx: true });
 * fake.shipment('RR123456785CN').deliver();
 * const report = await sender.flush(); // { items: 1, accepted: 1, lost: 0, sent: [three requests] }
 */
export function createWebhookSender(options: WebhookSenderOptions): WebhookSender {
  const { receiver, fake, duplicates, random, concurrency, ...rules } = resolveOptions(options);

  async function send({ pushes, body }: Job, sent: SentWebhook[], accepted: Set<WebhookPush>): Promise<void> {
    const messageIds = pushes.flatMap(({ item }) => item.metadata?.messageId ?? []);
    for (let attempt = 1; attempt <= rules.maxAttempts; attempt += 1) {
      if (attempt > 1) await sleep(rules.delayMs);
      const result = await deliver(receiver, body);
      const request = { messageIds, attempt, ...result };
      sent.push(request);
      for (const push of pushes) fake.webhooks.record(push, result);
      rules.onSent?.(request, pushes);
      if (!result.succeeded) continue;
      for (const push of pushes) accepted.add(push);
      return;
    }
  }

  /** Sends what waits now. */
  async function sendWaiting(): Promise<WebhookSenderReport> {
    // Looked up each time: a reset of the fake makes a new queue.
    const pushes = fake.webhooks.take();
    const jobs: Job[] = [];
    for (let start = 0; start < pushes.length; start += rules.itemsPerRequest) {
      const group = pushes.slice(start, start + rules.itemsPerRequest);
      const job = { pushes: group, body: bodyOf(group, rules.isFlat) };
      for (let copy = 0; copy <= duplicates; copy += 1) jobs.push(job);
    }
    const sent: SentWebhook[] = [];
    const accepted = new Set<WebhookPush>();
    // Shared by all lanes, so each job is taken once.
    const queue = (random === undefined ? jobs : shuffled(jobs, random)).values();
    const lane = async () => {
      for (const job of queue) await send(job, sent, accepted);
    };
    await Promise.all(Array.from({ length: Math.min(concurrency, jobs.length) }, lane));
    return { items: pushes.length, accepted: accepted.size, lost: pushes.length - accepted.size, sent };
  }

  return {
    async flush() {
      const sent: SentWebhook[] = [];
      const total = { items: 0, accepted: 0, lost: 0, sent };
      for (let report = await sendWaiting(); report.items > 0; report = await sendWaiting()) {
        total.items += report.items;
        total.accepted += report.accepted;
        total.lost += report.lost;
        for (const request of report.sent) sent.push(request);
      }
      return total;
    },
    async probe() {
      return (await deliver(receiver)).status === 200;
    },
    start({ everyMs = 100, onReport } = {}) {
      let running: Promise<void> | undefined;
      const look = async () => {
        try {
          // Not until nothing is left: under a steady stream that report would never end.
          const report = await sendWaiting();
          if (report.sent.length > 0) onReport?.(report);
        } finally {
          running = undefined;
        }
      };
      const timer = globalThis.setInterval(() => {
        running ??= look();
      }, everyMs);
      return async () => {
        globalThis.clearInterval(timer);
        await running;
      };
    },
  };
}
