import { sleep } from '../../common/timing.ts';
import { runAll } from './run-all.ts';
import { type Job, shuffled, toJobs } from './webhook-jobs.ts';
import type { WebhookPush } from './webhook-queue.ts';
import { type Answered, deliver } from './webhook-request.ts';
import { resolveSenderOptions, type WebhookSenderOptions } from './webhook-sender-options.ts';

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

function sum(one: WebhookSenderReport, other: WebhookSenderReport): WebhookSenderReport {
  return {
    items: one.items + other.items,
    accepted: one.accepted + other.accepted,
    lost: one.lost + other.lost,
    sent: [...one.sent, ...other.sent],
  };
}

/**
 * Plays the service's part in webhooks: takes what a fake queued and pushes it to your receiver,
 * with the duplicates, disorder and repeats that the real one is known for.
 *
 * @param options - see `WebhookSenderOptions`; `target` and `fake` are required
 * @returns the sender
 * @throws ConfigurationError when an option makes no sense
 * @specification service.md 6; public contract
 * @example
 * const sender = createWebhookSender({ target: handler, secret, fake, duplicates: 2, shuffle: true, until2xx: true });
 * fake.shipment('RR123456785CN').deliver();
 * const report = await sender.flush(); // { items: 1, accepted: 1, lost: 0, sent: [three requests] }
 */
export function createWebhookSender(options: WebhookSenderOptions): WebhookSender {
  const { target, secret, fake, duplicates, random, concurrency, ...rules } = resolveSenderOptions(options);

  async function send(job: Job, sent: SentWebhook[], accepted: Set<WebhookPush>): Promise<void> {
    const messageIds = job.pushes.flatMap(({ item }) => item.metadata?.messageId ?? []);
    for (let attempt = 1; attempt <= rules.maxAttempts; attempt += 1) {
      if (attempt > 1) await sleep(rules.delayMs);
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
