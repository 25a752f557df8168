import { ConfigurationError } from '../../errors.ts';
import { checkCount, checkDelayMs, checkKnownOptions } from '../../option-checks.ts';
import { kindOf } from '../../validation.ts';
import type { FakeTrackingService } from '../fake-tracking-service.ts';
import { seededRandom } from '../service/seeded.ts';
import { runAll } from './run-all.ts';
import type { WebhookPush } from './webhook-queue.ts';
import { type Answered, deliver, type WebhookTarget } from './webhook-request.ts';

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
  /** `flat` sends `{ trackerId, clientTrackerId, events }` of service.md 6, one item a request. Default `enveloped`. */
  readonly shape?: 'enveloped' | 'flat';
  /** Milliseconds until an unanswered request counts as failed. Default 15000. */
  readonly timeoutMs?: number;
  /** Told of each request when it is answered, and of what it held. */
  readonly onSent?: (sent: SentWebhook, pushes: readonly WebhookPush[]) => void;
}

/** One request to the receiver. */
export interface SentWebhook extends Answered {
  /** The messages it held. */
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
  /** Every request in the order of its answer, duplicates and repeats included. */
  readonly sent: readonly SentWebhook[];
}

/** Pushes what a fake queued, as the service would. */
export interface WebhookSender {
  /** Sends everything that waits now, and what comes meanwhile; resolves when nothing is left. */
  flush(): Promise<WebhookSenderReport>;
  /** Asks with `HEAD` whether the receiver is there, as older documentation has it; true for 200. */
  probe(): Promise<boolean>;
  /**
   * Sends whatever is queued from now on.
   *
   * @param options - `everyMs`: how often to look, default 100; `onReport`: told after each look that sent something
   * @returns stops it, and resolves when the last request is over
   */
  start(options?: {
    readonly everyMs?: number;
    readonly onReport?: (report: WebhookSenderReport) => void;
  }): () => Promise<void>;
}

/** One body to send, once or more often. */
interface Job {
  readonly pushes: readonly WebhookPush[];
  readonly body: string;
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
  const { maxAttempts = MAX_ATTEMPTS, delayMs = 100 } = until2xx === true ? {} : until2xx;
  return {
    maxAttempts: checkCount('until2xx.maxAttempts', maxAttempts, 1),
    delayMs: checkDelayMs('until2xx.delayMs', delayMs),
  };
}

function resolveOptions(options: WebhookSenderOptions) {
  checkKnownOptions('options', options, OPTION_NAMES);
  const { target, secret } = options;
  const isTarget = typeof target === 'function' || URL.canParse(target);
  if (!isTarget)
    throw new ConfigurationError(`Expected \`target\` to be a URL or a function, got ${kindOf(target)}`);
  return {
    target,
    secret,
    fake: options.fake,
    duplicates: checkCount('duplicates', options.duplicates ?? 0, 0),
    random: options.shuffle === true ? seededRandom(options.seed ?? 1) : undefined,
    concurrency: checkCount('concurrency', options.concurrency ?? 1, 1),
    itemsPerRequest:
      options.shape === 'flat' ? 1 : checkCount('itemsPerRequest', options.itemsPerRequest ?? 1, 1),
    isFlat: options.shape === 'flat',
    timeoutMs: checkDelayMs('timeoutMs', options.timeoutMs ?? TIMEOUT_MS),
    onSent: options.onSent ?? (() => {}),
    ...resolveRepeats(options.until2xx ?? false),
  };
}

function flatBody({ item }: WebhookPush): unknown {
  const { trackerId, clientTrackerId } = item.tracker;
  return { trackerId, clientTrackerId, events: 'events' in item ? item.events : [] };
}

function toJobs(pushes: readonly WebhookPush[], size: number, isFlat: boolean): Job[] {
  const jobs: Job[] = [];
  for (let start = 0; start < pushes.length; start += size) {
    const group = pushes.slice(start, start + size);
    const [first] = group;
    const isFlatJob = isFlat && first !== undefined;
    const payload = isFlatJob ? flatBody(first) : { trackings: group.map(({ item }) => item) };
    jobs.push({ pushes: group, body: JSON.stringify(payload) });
  }
  return jobs;
}

function shuffled<Item>(items: readonly Item[], random: () => number): Item[] {
  return items
    .map((item) => ({ item, place: random() }))
    .sort((one, other) => one.place - other.place)
    .map(({ item }) => item);
}

function sum(one: WebhookSenderReport, other: WebhookSenderReport): WebhookSenderReport {
  return {
    items: one.items + other.items,
    accepted: one.accepted + other.accepted,
    lost: one.lost + other.lost,
    sent: [...one.sent, ...other.sent],
  };
}

function wait(delayMs: number): Promise<void> {
  return delayMs > 0 ? new Promise((resolve) => globalThis.setTimeout(resolve, delayMs)) : Promise.resolve();
}

/**
 * Plays the service's part in webhooks: takes what a fake queued and pushes it to your receiver,
 * with the duplicates, disorder and repeats that the real one is known for (service.md 6, public contract).
 *
 * @param options - see `WebhookSenderOptions`; `target` and `fake` are required
 * @throws ConfigurationError when an option makes no sense
 * @example
 * const sender = createWebhookSender({ target: handler, secret, fake, duplicates: 2, shuffle: true, until2xx: true });
 * fake.shipment('RR123456785CN').deliver();
 * const report = await sender.flush(); // { items: 1, accepted: 1, lost: 0, sent: [three requests] }
 */
export function createWebhookSender(options: WebhookSenderOptions): WebhookSender {
  const { target, secret, fake, duplicates, random, concurrency, ...rules } = resolveOptions(options);

  async function send(job: Job, sent: SentWebhook[], accepted: Set<WebhookPush>): Promise<void> {
    const messageIds = job.pushes.flatMap(({ item }) => item.metadata?.messageId ?? []);
    for (let attempt = 1; attempt <= rules.maxAttempts; attempt += 1) {
      if (attempt > 1) await wait(rules.delayMs);
      const answered = await deliver(target, { body: job.body, secret, timeoutMs: rules.timeoutMs });
      const request = { messageIds, attempt, ...answered };
      sent.push(request);
      for (const push of job.pushes) fake.webhooks.record(push, answered);
      rules.onSent(request, job.pushes);
      if (!answered.succeeded) continue;
      for (const push of job.pushes) accepted.add(push);
      return;
    }
  }

  /** Sends what waits now. */
  async function sendWaiting(): Promise<WebhookSenderReport> {
    const pushes = fake.webhooks.take();
    const accepted = new Set<WebhookPush>();
    const sent: SentWebhook[] = [];
    const jobs = toJobs(pushes, rules.itemsPerRequest, rules.isFlat);
    const copies = jobs.flatMap((job) => new Array<Job>(duplicates + 1).fill(job));
    const ordered = random === undefined ? copies : shuffled(copies, random);
    await runAll(ordered, concurrency, (job) => send(job, sent, accepted));
    return { items: pushes.length, accepted: accepted.size, lost: pushes.length - accepted.size, sent };
  }

  async function flush(): Promise<WebhookSenderReport> {
    let report = await sendWaiting();
    for (let next = report; next.items > 0; ) {
      next = await sendWaiting();
      report = sum(report, next);
    }
    return report;
  }

  return {
    flush,
    async probe() {
      const { status } = await deliver(target, { secret, timeoutMs: rules.timeoutMs });
      return status === 200;
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
