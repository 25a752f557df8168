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
import { MAX_TIMER_MS, sleep } from '../../common/timing.ts';
import type { FakeTrackingService } from '../fake-tracking-service.ts';
import { checkSpeed } from '../options.ts';
import { checkSeed, seededRandom } from '../service/seeded.ts';
import {
  type DeliveryResult,
  deliver,
  retryAfterMs,
  scheduledWaitMs,
  type WebhookTarget,
} from './delivery.ts';
import type { WebhookPush } from './queue.ts';

/** The service gives up after as many attempts (public contract). */
const MAX_ATTEMPTS = 20;
/** Compresses the six days to about two seconds. */
const DEFAULT_SPEED = 250_000;
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
  /**
   * True to repeat what was not accepted, as the service does: 20 attempts over about six days, with waits from 15 seconds to 18 hours, and
   * never before a `Retry-After` of the receiver. Default false.
   * `speed` is how many times faster that goes, at least 1; default 250000, so that it takes two seconds. With 1, use fake timers.
   * `maxAttempts` is how often it tries, `delayMs` another wait, the same each time, in milliseconds.
   */
  readonly until2xx?:
    | boolean
    | { readonly maxAttempts?: number; readonly delayMs?: number; readonly speed?: number };
  /** Items of `trackings[]` in a request. Default 1. */
  readonly itemsPerRequest?: number;
  /**
   * `flat` sends `{ trackerId, clientTrackerId, events }` (service.md 6), one item a request, and a proof of delivery, which that
   * shape does not have, enveloped. Default `enveloped`.
   */
  readonly shape?: 'enveloped' | 'flat';
  /**
   * `clientTrackerId` leaves the `trackerId` out of what is sent for a tracker that has a `clientTrackerId`: receivers match by
   * either (service.md 6). Default `both`.
   */
  readonly identifyBy?: 'both' | 'clientTrackerId';
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
   * @returns stops it, and resolves when the last request is over, repeats included
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
  'identifyBy',
  'timeoutMs',
  'onSent',
] as const satisfies readonly (keyof WebhookSenderOptions)[];

function resolveRepeats(until2xx: NonNullable<WebhookSenderOptions['until2xx']>) {
  if (until2xx === false) return { maxAttempts: 1, delayMs: undefined, speed: 1 };
  if (until2xx !== true) checkKnownOptions('until2xx', until2xx, ['maxAttempts', 'delayMs', 'speed']);
  const { maxAttempts = MAX_ATTEMPTS, delayMs, speed = DEFAULT_SPEED } = until2xx === true ? {} : until2xx;
  return {
    maxAttempts: checkCount('until2xx.maxAttempts', maxAttempts, 1),
    delayMs: delayMs === undefined ? undefined : checkDelayMs('until2xx.delayMs', delayMs),
    speed: checkSpeed(speed),
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
    identifyBy: checkOneOf('identifyBy', options.identifyBy ?? 'both', ['both', 'clientTrackerId']),
    onSent,
    ...resolveRepeats(options.until2xx ?? false),
  };
}

/** One body to send, once or more often. */
interface Job {
  readonly pushes: readonly WebhookPush[];
  readonly body: object;
}

type Shape = Pick<ReturnType<typeof resolveOptions>, 'isFlat' | 'identifyBy'>;

/** The item of a push as it is sent. */
function itemOf({ item }: WebhookPush, identifyBy: Shape['identifyBy']) {
  if (identifyBy === 'both' || !item.tracker.clientTrackerId) return item;
  return { ...item, tracker: { ...item.tracker, trackerId: undefined } };
}

/** The body of some pushes; a proof of delivery stays enveloped, for the flat shape does not have it. */
function bodyOf(pushes: readonly WebhookPush[], { isFlat, identifyBy }: Shape): object {
  const items = pushes.map((push) => itemOf(push, identifyBy));
  const [item] = items;
  if (!isFlat || item === undefined || !('events' in item)) return { trackings: items };
  const { trackerId, clientTrackerId } = item.tracker;
  return { trackerId, clientTrackerId, events: item.events };
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
  const url = typeof receiver.target === 'function' ? null : String(receiver.target);
  let freeLanes = concurrency;
  const waiting = new Set<() => void>();

  /** Runs a request when fewer than `concurrency` are under way; first come, first served. */
  async function inLane<Result>(run: () => Promise<Result>): Promise<Result> {
    if (freeLanes > 0) freeLanes -= 1;
    else await new Promise<void>((resolve) => waiting.add(resolve));
    try {
      return await run();
    } finally {
      const [next = () => (freeLanes += 1)] = waiting;
      waiting.delete(next);
      next();
    }
  }

  /** One request; resolves to the wait until the next one, or undefined when there is none. */
  async function attemptOf(
    { pushes, body }: Job,
    attempt: number,
    sent: SentWebhook[],
    accepted: Set<WebhookPush>,
  ): Promise<number | undefined> {
    const outcome = await deliver(receiver, JSON.stringify(body));
    const { status, succeeded, responseHeaders } = outcome;
    const messageIds = pushes.flatMap(({ item }) => item.metadata?.messageId ?? []);
    const request = { messageIds, attempt, status, succeeded };
    sent.push(request);
    fake.webhooks.record(pushes, { ...outcome, url, requestBody: body });
    rules.onSent?.(request, pushes);
    if (succeeded) for (const push of pushes) accepted.add(push);
    if (succeeded || attempt === rules.maxAttempts) return undefined;
    const ownWaitMs = rules.delayMs ?? scheduledWaitMs(attempt) / rules.speed;
    return Math.min(Math.max(ownWaitMs, retryAfterMs(responseHeaders) / rules.speed), MAX_TIMER_MS);
  }

  /** Sends a request until it is accepted or given up; others go on while it waits. */
  async function send(job: Job, sent: SentWebhook[], accepted: Set<WebhookPush>): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      const waitMs = await inLane(() => attemptOf(job, attempt, sent, accepted));
      if (waitMs === undefined) return;
      await sleep(waitMs);
    }
  }

  /** Sends what waits now. */
  async function sendWaiting(): Promise<WebhookSenderReport> {
    // Looked up each time: a reset of the fake makes a new queue.
    const pushes = fake.webhooks.take();
    const jobs: Job[] = [];
    for (let start = 0; start < pushes.length; start += rules.itemsPerRequest) {
      const group = pushes.slice(start, start + rules.itemsPerRequest);
      const job = { pushes: group, body: bodyOf(group, rules) };
      for (let copy = 0; copy <= duplicates; copy += 1) jobs.push(job);
    }
    const sent: SentWebhook[] = [];
    const accepted = new Set<WebhookPush>();
    const ordered = random === undefined ? jobs : shuffled(jobs, random);
    await Promise.all(ordered.map((job) => send(job, sent, accepted)));
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
      // Looks overlap: what waits for its repeat does not hold up what comes after it.
      const looks = new Set<Promise<void>>();
      const look = async () => {
        // Not until nothing is left: under a steady stream that report would never end.
        const report = await sendWaiting();
        if (report.sent.length > 0) onReport?.(report);
      };
      const timer = globalThis.setInterval(() => {
        const current = look().finally(() => looks.delete(current));
        looks.add(current);
      }, everyMs);
      return async () => {
        globalThis.clearInterval(timer);
        await Promise.all(looks);
      };
    },
  };
}
