#!/usr/bin/env node
import { sleep } from '../../common/timing.ts';
import { VERSION } from '../../config/config.ts';
import { createFakeTrackingService } from '../fake-tracking-service.ts';
import { createWebhookSender } from '../webhooks/sender.ts';
import { type Flags, HELP, parseFlags, USAGE, UsageError } from './flags.ts';
import { greeting, paintFor, pushLine, requestLine } from './output.ts';

const EXIT_FAILED = 1;
const EXIT_USAGE = 2;

/** What is remembered of requests and pushes, so that a run of days stays small. */
const HISTORY_LIMIT = 1000;
/** The six days of the service's attempts take half a minute: long enough for a receiver that is being restarted. */
const RETRY_SPEED = 16_000;
const MAX_ATTEMPTS = 20;
const PUSHES_AT_ONCE = 4;
/** What a push under way gets to end well. */
const STOP_GRACE_MS = 1000;

const { stdout, stderr } = process;
const paint = paintFor(stdout.isTTY === true, process.env);

function print(line: string): void {
  stdout.write(`${line}\n`);
}

function leave(message: string, exitCode: number): never {
  stderr.write(`tracking-client-fake: ${message}\n`);
  process.exit(exitCode);
}

function whyNotListening(error: unknown, { host, port }: Flags): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'EADDRINUSE') return `Port ${port} of ${host} is in use; choose another with --port`;
  if (code === 'EACCES') return `Port ${port} of ${host} is not allowed; choose another with --port`;
  return `Could not listen on port ${port} of ${host}: ${error instanceof Error ? error.message : error}`;
}

async function serve(flags: Flags): Promise<void> {
  const { host, port, apiKeys, plays, speed, seed, webhookUrl, webhookSecret } = flags;
  const fake = createFakeTrackingService({
    ...(apiKeys.length > 0 && { apiKeys }),
    play: plays,
    speed,
    seed,
    plans: { perCall: flags.hasPerCallPlan },
    webhooks: webhookUrl !== undefined,
    historyLimit: HISTORY_LIMIT,
    onRequest: (request) => print(requestLine(request, paint)),
  });
  const server = await fake
    .listen({ host, port })
    .catch((error: unknown) => leave(whyNotListening(error, flags), EXIT_FAILED));
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
      until2xx: { maxAttempts: MAX_ATTEMPTS, speed: RETRY_SPEED },
      onSent: (sent, pushes) =>
        print(pushLine(sent, pushes, { atMs: Date.now(), maxAttempts: MAX_ATTEMPTS, paint })),
    }).start();
  print(greeting(server.url, flags, paint));
  const stop = async () => {
    // A second Ctrl-C does not wait.
    process.once('SIGINT', () => process.exit(0));
    await server.close();
    await Promise.race([stopSender(), sleep(STOP_GRACE_MS)]);
    print('Stopped.');
    process.exit(0);
  };
  process.once('SIGINT', stop);
  process.once('SIGTERM', stop);
}

// A reader that has seen enough, as `head`, is no failure.
stdout.on('error', () => process.exit(0));

try {
  const flags = parseFlags(process.argv.slice(2));
  if (flags === 'help') print(HELP);
  else if (flags === 'version') print(VERSION);
  else void serve(flags);
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  leave(`${error.message}. Usage: ${USAGE} (--help tells all)`, EXIT_USAGE);
}
