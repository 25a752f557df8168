import { setTimeout as sleep } from 'node:timers/promises';
import { createFakeTrackingService, createWebhookSender } from 'tracking-client/testing';
import type { FakeFlags } from './fake-flags.ts';
import { greeting, pushLine, requestLine } from './fake-output.ts';
import { EXIT, explainListenFailure, print, type Terminal, untilAborted } from './terminal.ts';

/** How many requests and pushes are remembered, so that a run of days stays small. */
const HISTORY_LIMIT = 1000;
/** The six days of the service's attempts take half a minute: long enough for a receiver that is being restarted. */
const RETRY_SPEED = 16_000;
const MAX_ATTEMPTS = 20;
const PUSHES_AT_ONCE = 4;
/** How long a push under way may take to end well. */
const STOP_GRACE_MS = 1000;

/** Serves a fake tracking service over HTTP until Ctrl-C. */
export async function serveFake(flags: FakeFlags, terminal: Terminal): Promise<number> {
  const { host, port, apiKey, play = ['delivered'], speed, seed, quota, limit = [], webhookUrl } = flags;
  const { colours } = terminal;
  const fake = createFakeTrackingService({
    ...(apiKey !== undefined && { apiKeys: apiKey }),
    play: play.filter((name) => name !== 'none'),
    speed,
    seed,
    limits: limit.includes('off') ? false : Object.assign({}, ...limit),
    latencyMs: flags.latency,
    plans: { perShipment: quota === undefined ? true : { quota }, perCall: flags.perCall ?? false },
    webhooks: webhookUrl !== undefined,
    historyLimit: HISTORY_LIMIT,
    onRequest: (request) => print(terminal, requestLine(request, colours)),
  });
  for (const { endpoint, failure } of flags.fail ?? []) fake.fail(endpoint, failure);
  const server = await fake.listen({ host, port, control: true }).catch((error: unknown) => {
    throw explainListenFailure(error, host, port);
  });
  let stopSender = async () => {};
  if (webhookUrl !== undefined)
    stopSender = createWebhookSender({
      target: webhookUrl,
      fake,
      ...(flags.webhookSecret !== undefined && { secret: flags.webhookSecret }),
      duplicates: flags.duplicates,
      shuffle: flags.shuffle ?? false,
      seed,
      concurrency: PUSHES_AT_ONCE,
      until2xx: { maxAttempts: MAX_ATTEMPTS, speed: RETRY_SPEED },
      onSent: (sent, pushes) =>
        print(terminal, pushLine(sent, pushes, { atMs: Date.now(), maxAttempts: MAX_ATTEMPTS, colours })),
    }).start();
  print(terminal, greeting(server.url, flags, colours));
  await untilAborted(terminal.signal);
  await server.close();
  await Promise.race([stopSender(), sleep(STOP_GRACE_MS)]);
  print(terminal, 'Stopped.');
  return EXIT.done;
}
