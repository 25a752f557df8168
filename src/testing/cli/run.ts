import { sleep } from '../../common/timing.ts';
import { createFakeTrackingService } from '../fake-tracking-service.ts';
import { createWebhookSender } from '../webhooks/sender.ts';
import type { Flags } from './flags.ts';
import { type Paint, pushLine, requestLine } from './output.ts';

/** What is remembered of requests and pushes, so that a run of days stays small. */
const HISTORY_LIMIT = 1000;
/** Long enough for a receiver that is being restarted. */
const MAX_ATTEMPTS = 10;
const RETRY_DELAY_MS = 1000;
const PUSHES_AT_ONCE = 4;
/** What a push under way gets to end well. */
const STOP_GRACE_MS = 1000;

/** A fake service that runs as a command. */
export interface RunningFake {
  /** Base URL for clients. */
  readonly url: string;
  /** Stops listening and pushing; resolves within about a second. */
  stop(): Promise<void>;
}

/** Where the lines go, and how they look. */
export interface Screen {
  readonly print: (line: string) => void;
  readonly paint: Paint;
}

/**
 * Starts the fake service of the command.
 *
 * @throws the error of the socket, e.g. `EADDRINUSE`
 */
export async function runFake(flags: Flags, { print, paint }: Screen): Promise<RunningFake> {
  const { apiKeys, plays, speed, seed, hasPerCallPlan, webhookUrl, webhookSecret } = flags;
  const fake = createFakeTrackingService({
    ...(apiKeys.length > 0 && { apiKeys }),
    play: plays,
    speed,
    seed,
    plans: { perShipment: true, perCall: hasPerCallPlan },
    webhooks: webhookUrl !== undefined,
    historyLimit: HISTORY_LIMIT,
    onRequest: (request) => print(requestLine(request, paint)),
  });
  const server = await fake.listen({ host: flags.host, port: flags.port });
  let stopSender = async () => {};
  if (webhookUrl !== undefined)
    stopSender = createWebhookSender({
      target: webhookUrl,
      fake,
      ...(webhookSecret !== undefined && { secret: webhookSecret }),
      duplicates: flags.duplicates,
      shuffle: flags.shuffle,
      seed,
      concurrency: PUSHES_AT_ONCE,
      until2xx: { maxAttempts: MAX_ATTEMPTS, delayMs: RETRY_DELAY_MS },
      onSent: (sent, pushes) =>
        print(pushLine(sent, pushes, { atMs: Date.now(), maxAttempts: MAX_ATTEMPTS, paint })),
    }).start();
  return {
    url: server.url,
    async stop() {
      await server.close();
      await Promise.race([stopSender(), sleep(STOP_GRACE_MS)]);
    },
  };
}
