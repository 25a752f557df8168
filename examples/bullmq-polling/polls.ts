// Polls of trackers as jobs of BullMQ. Copy this file and worker.ts into your app.
import { type Job, Queue, UnrecoverableError, Worker } from 'bullmq';
import { isTrackingError, type TrackingClient } from 'tracking-client';
import type { WebhookCallbacks, WebhookInbox } from 'tracking-client/webhooks';

const NAME = 'tracking-polls';
const INTERVAL_MS = 15 * 60_000;
const connection = { url: process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379', maxRetriesPerRequest: null };

export interface PollJob {
  trackerId: string;
}

export function pollQueue() {
  return new Queue<PollJob>(NAME, { connection }).on('error', console.error);
}

/** Polls a tracker every 15 minutes, until it is stopped. Call this function for each tracker that you create. */
export async function startPolling(
  queue: Queue<PollJob>,
  trackerId: string,
  startDate = Date.now() + INTERVAL_MS,
) {
  const backoff = { type: 'exponential', delay: 10_000 };
  const opts = { attempts: 4, backoff, removeOnComplete: true, removeOnFail: { age: 7 * 86_400 } };
  const job = { name: 'poll', data: { trackerId }, opts };
  await queue.upsertJobScheduler(trackerId, { every: INTERVAL_MS, startDate }, job);
}

export interface Polling {
  queue: Queue<PollJob>;
  client: TrackingClient;
  inbox: WebhookInbox;
  callbacks: WebhookCallbacks;
  onLag(ms: number): void; // called before the first attempt of each job: how late the job starts
  lockMs?: number; // if a worker dies, its jobs are taken over after between 0.5 and 2 times this time
}

export function pollWorker({ queue, client, inbox, callbacks, onLag, lockMs = 30_000 }: Polling) {
  async function poll({ data: { trackerId }, timestamp, opts, attemptsMade }: Job<PollJob>) {
    if (attemptsMade === 0) onLag(Date.now() - timestamp - (opts.delay ?? 0));
    try {
      // If a 429 asks for a wait of more than 5 s, the job fails, and BullMQ tries again later.
      const retry = { maxRetryAfterMs: 5_000 };
      const update = await client.trackers.pollOnce(trackerId, { retry, totalTimeoutMs: 20_000 });
      const { outcome } = await inbox.processResults(update, callbacks);
      if (outcome !== 'done' && outcome !== 'rejected')
        throw new Error(`An event was not handled: ${outcome}`);
      if (update.stopped) await queue.removeJobScheduler(trackerId);
    } catch (error) {
      if (!isTrackingError(error, 'tracker_not_found')) throw error; // BullMQ tries again
      await queue.removeJobScheduler(trackerId);
      throw new UnrecoverableError(error.message);
    }
  }
  const options = { connection, concurrency: 20, lockDuration: lockMs, stalledInterval: lockMs };
  return new Worker<PollJob>(NAME, poll, options).on('error', console.error);
}
