import * as z from 'zod';
import { sleep } from '../../common/abort.ts';
import { MAX_TIMER_MS } from '../../common/clock.ts';
import {
  checkOptions,
  choiceOption,
  countOption,
  delayOption,
  functionOption,
  hasMethods,
  isUrl,
  type OptionShape,
  option,
  switchOption,
} from '../../common/option-checks.ts';
import { formatError, resolveLogger } from '../../observability/logger.ts';
import type { FakeTrackingService } from '../fake-tracking-service.ts';
import { seedOption, speedOption, switchWithOptions } from '../options.ts';
import { seededRandom } from '../service/seeded.ts';
import type { QueuedPush } from './queue.ts';
import {
  getRetryAfterMs,
  getScheduledWaitMs,
  type SendResult,
  sendToReceiver,
  type WebhookTarget,
} from './receiver.ts';

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
  /** `flat` sends `{ trackerId, clientTrackerId, events }`, one item a request, and proofs of delivery enveloped. Default `enveloped`. */
  readonly shape?: 'enveloped' | 'flat';
  /** `clientTrackerId` leaves out the `trackerId` where there is one: receivers match by either. Default `both`. */
  readonly identifyBy?: 'both' | 'clientTrackerId';
  /** Milliseconds until an unanswered request counts as failed. Default 15000. */
  readonly timeoutMs?: number;
  /** Told of each request when it is over, and of what it held. An error of it goes to the console. */
  readonly onSent?: (sent: SentWebhook, pushes: readonly QueuedPush[]) => void;
}

/** One request to the receiver. */
export interface SentWebhook extends SendResult {
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
   * @param options - `everyMs`: how often to look, in milliseconds, default 100; `onReport`: told after each look that sent something; an error of it goes to the console
   * @returns stops it, and resolves when the last request is over, repeats included
   */
  start(options?: {
    readonly everyMs?: number;
    readonly onReport?: (report: WebhookSenderReport) => void;
  }): () => Promise<void>;
}

const repeatOptions = z.strictObject({
  maxAttempts: countOption(1).default(MAX_ATTEMPTS),
  delayMs: delayOption.optional(),
  speed: speedOption.default(DEFAULT_SPEED),
});

const senderOptions = z.strictObject({
  target: option<WebhookTarget>(
    'a URL or a function',
    (value) => typeof value === 'function' || isUrl(value),
  ),
  fake: option<WebhookSenderOptions['fake']>('a fake tracking service', (value) =>
    hasMethods(Object(value).webhooks, 'take'),
  ),
  secret: option<string>(
    'a non-empty string',
    (value) => typeof value === 'string' && value !== '',
  ).optional(),
  duplicates: countOption(0).default(0),
  shuffle: switchOption.default(false),
  seed: seedOption.default(1),
  concurrency: countOption(1).default(1),
  until2xx: switchWithOptions('until2xx', repeatOptions).prefault(false),
  itemsPerRequest: countOption(1).default(1),
  shape: choiceOption(['enveloped', 'flat']).default('enveloped'),
  identifyBy: choiceOption(['both', 'clientTrackerId']).default('both'),
  timeoutMs: delayOption.default(TIMEOUT_MS),
  onSent: functionOption<NonNullable<WebhookSenderOptions['onSent']>>().optional(),
} satisfies OptionShape<WebhookSenderOptions>);

interface Job {
  readonly pushes: readonly QueuedPush[];
  readonly body: object;
}

function newReport() {
  const sent: SentWebhook[] = [];
  return { items: 0, accepted: 0, lost: 0, sent };
}

type BodyRules = Pick<z.output<typeof senderOptions>, 'shape' | 'identifyBy'>;

/** The body of some pushes; a proof of delivery stays enveloped, for the flat shape does not have it. */
function buildBody(pushes: readonly QueuedPush[], { shape, identifyBy }: BodyRules): object {
  const items = pushes.map(({ item }) => {
    if (identifyBy === 'both' || !item.tracker.clientTrackerId) return item;
    return { ...item, tracker: { ...item.tracker, trackerId: undefined } };
  });
  const [item] = items;
  if (shape !== 'flat' || item === undefined || !('events' in item)) return { trackings: items };
  const { trackerId, clientTrackerId } = item.tracker;
  return { trackerId, clientTrackerId, events: item.events };
}

/** The same jobs in an order that only the random numbers decide. */
function shuffle(jobs: readonly Job[], random: () => number): Job[] {
  const placed = jobs.map((job) => ({ job, place: random() }));
  return placed.sort((a, b) => a.place - b.place).map(({ job }) => job);
}

/** Calls an observer. One that fails, at once or later, must neither end the process nor stop the sender. */
function tell(observer: () => unknown): void {
  (async () => observer())().catch((error) => {
    resolveLogger().error(`A callback of the webhook sender failed: ${formatError(error)}`, { err: error });
  });
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
  const given = checkOptions(senderOptions, options);
  const { target, fake, until2xx } = given;
  const receiver = { target, secret: given.secret, timeoutMs: given.timeoutMs };
  const url = typeof target === 'function' ? null : String(target);
  const maxAttempts = until2xx.isOn ? until2xx.maxAttempts : 1;
  const itemsPerRequest = given.shape === 'flat' ? 1 : given.itemsPerRequest;
  const random = seededRandom(given.seed);
  let freeLanes = given.concurrency;
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

  async function attemptOf({ pushes, body }: Job, attempt: number, sent: SentWebhook[]) {
    const outcome = await sendToReceiver(receiver, JSON.stringify(body));
    const { status, succeeded } = outcome;
    const messageIds = pushes.flatMap(({ item }) => item.metadata?.messageId ?? []);
    const request = { messageIds, attempt, status, succeeded };
    sent.push(request);
    fake.webhooks.record(pushes, { ...outcome, url, requestBody: body });
    tell(() => given.onSent?.(request, pushes));
    return outcome;
  }

  /** Sends a request until it is accepted or given up; others go on while it waits. */
  async function isAccepted(job: Job, sent: SentWebhook[]): Promise<boolean> {
    for (let attempt = 1; ; attempt += 1) {
      const { succeeded, responseHeaders } = await inLane(() => attemptOf(job, attempt, sent));
      if (succeeded || attempt === maxAttempts) return succeeded;
      const ownWaitMs = until2xx.delayMs ?? getScheduledWaitMs(attempt) / until2xx.speed;
      const askedWaitMs = getRetryAfterMs(responseHeaders) / until2xx.speed;
      await sleep(Math.min(Math.max(ownWaitMs, askedWaitMs), MAX_TIMER_MS));
    }
  }

  /** Sends what waits now, and adds to the report what became of it; false when nothing waits. */
  async function sendWaiting(report: ReturnType<typeof newReport>): Promise<boolean> {
    // Looked up each time: a reset of the fake makes a new queue.
    const pushes = fake.webhooks.take();
    const jobs: Job[] = [];
    for (let start = 0; start < pushes.length; start += itemsPerRequest) {
      const group = pushes.slice(start, start + itemsPerRequest);
      const job = { pushes: group, body: buildBody(group, given) };
      for (let copy = 0; copy <= given.duplicates; copy += 1) jobs.push(job);
    }
    const accepted = new Set<QueuedPush>();
    const send = async (job: Job) => {
      if (await isAccepted(job, report.sent)) for (const push of job.pushes) accepted.add(push);
    };
    await Promise.all((given.shuffle ? shuffle(jobs, random) : jobs).map(send));
    report.items += pushes.length;
    report.accepted += accepted.size;
    report.lost += pushes.length - accepted.size;
    return pushes.length > 0;
  }

  return {
    async flush() {
      const report = newReport();
      let isSending = true;
      while (isSending) isSending = await sendWaiting(report);
      return report;
    },
    probe: async () => (await sendToReceiver(receiver)).status === 200,
    start({ everyMs = 100, onReport } = {}) {
      // Looks overlap: what waits for its repeat does not hold up what comes after it.
      const looks = new Set<Promise<void>>();
      const look = async () => {
        // Not until nothing is left: under a steady stream that report would never end.
        const report = newReport();
        await sendWaiting(report);
        if (report.sent.length > 0) tell(() => onReport?.(report));
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
