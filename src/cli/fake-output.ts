import { VERSION } from 'tracking-client';
import type { QueuedPush, RecordedRequest, SentWebhook } from 'tracking-client/testing';
import type { FakeFlags } from './fake-flags.ts';
import type { Colours } from './terminal.ts';
import { plain } from './text.ts';

/** The settings that a person needs to use the fake, ready to copy. */
export function greeting(url: string, flags: FakeFlags, colours: Colours): string {
  const { apiKey = [], webhookUrl, webhookSecret, speed } = flags;
  const plays = (flags.play ?? ['delivered']).filter((name) => name !== 'none');
  const keys = apiKey.length === 1 ? 'one key is' : `${apiKey.length} keys are`;
  const secret = webhookSecret === undefined ? 'without a secret' : 'with the secret';
  const pace = speed === 1 ? 'in real time' : `${speed} times faster than real time`;
  const play = `${plays.join(', then ')}, ${speed === Number.POSITIVE_INFINITY ? 'all at once' : pace}`;
  const key = apiKey.length === 0 ? 'any' : '$TRACKING_API_KEY';
  const hint = apiKey.length === 0 ? ' TRACKING_API_KEY=any' : '';
  return [
    colours.bold(`tracking-client fake ${VERSION}`),
    `  Base URL  ${colours.green(url)}`,
    `  API key   ${apiKey.length === 0 ? 'any key is' : keys} accepted`,
    `  Webhooks  ${webhookUrl === undefined ? 'none; --webhook-url turns them on' : `${webhookUrl}, ${secret}`}`,
    `  Play      ${plays.length === 0 ? 'none; events come from POST /__fake/events' : play}`,
    `  For apps  export TRACKING_BASE_URL=${url}${hint}`,
    `  By hand   curl -H "Authorization: Bearer ${key}" ${url}/couriers`,
    colours.dim('  Ctrl-C stops it.'),
  ].join('\n');
}

function statusText(status: number | null, isGood: boolean, colours: Colours): string {
  if (status === null) return colours.red('no answer');
  if (isGood) return colours.green(String(status));
  return (status < 500 ? colours.yellow : colours.red)(String(status));
}

/** `what` is padded to the longest method of an endpoint. */
function line(atMs: number, what: string, text: string, end: string, colours: Colours): string {
  const time = new Date(atMs).toTimeString().slice(0, 8);
  return `${colours.dim(time)} ${colours.bold(what.padEnd(6))} ${text} ${colours.dim('→')} ${end}`;
}

/** How many items a body has, or its number; only what is safe to print, for a body may hold control characters. */
function bodyNote(body: unknown): string | undefined {
  if (Array.isArray(body)) return body.length === 1 ? '1 item' : `${body.length} items`;
  const number: unknown = Object(body).trackingNumber;
  return typeof number === 'string' && /^[\w\-/.]{1,50}$/.test(number) ? number : undefined;
}

/** One request as a line; one that was rejected with its reason. */
export function requestLine(request: RecordedRequest, colours: Colours): string {
  const { method, path, query, body, receivedAtMs, status, failure, error } = request;
  const search = new URLSearchParams(query).toString();
  const note = bodyNote(body);
  const text = plain(path) + (search && `?${search}`) + (note === undefined ? '' : ` ${colours.dim(note)}`);
  const isGood = status !== null && status < 300;
  const why = error === undefined ? failure : `${error.code}${error.message ? `: ${error.message}` : ''}`;
  const end = why === undefined ? '' : ` ${plain(why)}`;
  return line(receivedAtMs, method, text, statusText(status, isGood, colours) + end, colours);
}

function contentOf({ item }: QueuedPush): string {
  if (!('events' in item)) return 'proof of delivery';
  const [newest] = item.events;
  const text = plain(newest?.status ?? newest?.statusMilestone ?? 'no status');
  return item.events.length > 1 ? `${text} (${item.events.length} events)` : text;
}

/** One push as a line; one that was refused with what follows. */
export function pushLine(
  { status, succeeded, attempt }: SentWebhook,
  pushes: readonly QueuedPush[],
  options: { readonly atMs: number; readonly maxAttempts: number; readonly colours: Colours },
): string {
  const { atMs, maxAttempts, colours } = options;
  const text = pushes.map((push) => {
    const resent = push.isReplay ? colours.dim(' (resent)') : '';
    return `${plain(push.item.tracker.trackingNumber ?? '')} ${contentOf(push)}${resent}`;
  });
  const saidNo = status !== null && status < 300 ? ' but success: false' : '';
  const next = attempt >= maxAttempts ? 'given up' : `attempt ${attempt} of ${maxAttempts}`;
  const note = succeeded ? '' : colours.dim(`${saidNo}, ${next}`);
  return line(atMs, 'push', text.join(', '), statusText(status, succeeded, colours) + note, colours);
}
