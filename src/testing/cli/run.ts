import { createFakeTrackingService, type FakeTrackingService } from '../fake-tracking-service.ts';
import { createWebhookSender, type WebhookSender } from '../webhooks/webhook-sender.ts';
import type { Flags } from './flags.ts';
import { pushLine, requestLine } from './lines.ts';
import type { Paint } from './paint.ts';

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

function senderOf(flags: Flags, fake: FakeTrackingService, screen: Screen): WebhookSender | undefined {
  const { webhookUrl, webhookSecret, duplicates, shuffle, seed } = flags;
  if (webhookUrl === undefined) return undefined;
  return createWebhookSender({
    target: webhookUrl,
    fake,
    ...(webhookSecret === undefined ? {} : { secret: webhookSecret }),
    duplicates,
    shuffle,
    seed,
    concurrency: PUSHES_AT_ONCE,
    until2xx: { maxAttempts: MAX_ATTEMPTS, delayMs: RETRY_DELAY_MS },
    onSent: (sent, pushes) => {
      const { paint } = screen;
      screen.print(pushLine(sent, pushes, { atMs: Date.now(), maxAttempts: MAX_ATTEMPTS, paint }));
    },
  });
}

function grace(delayMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, delayMs));
}

/**
 * Starts the fake service of the command.
 *
 * @throws the error of the socket, e.g. `EADDRINUSE`
 */
export async function runFake(flags: Flags, screen: Screen): Promise<RunningFake> {
  const { apiKeys, plays, speed, seed, hasPerCallPlan, webhookUrl, host, port } = flags;
  const fake = createFakeTrackingService({
    ...(apiKeys.length === 0 ? {} : { apiKeys }),
    play: plays,
    speed,
    seed,
    plans: { perShipment: true, perCall: hasPerCallPlan },
    webhooks: webhookUrl !== undefined,
    historyLimit: HISTORY_LIMIT,
    onRequest: (request) => screen.print(requestLine(request, screen.paint)),
  });
  const server = await fake.listen({ host, port });
  const stopSender = senderOf(flags, fake, screen)?.start();
  return {
    url: server.url,
    async stop() {
      await server.close();
      await Promise.race([stopSender?.(), grace(STOP_GRACE_MS)]);
    },
  };
}
