import { styleText } from 'node:util';
import { VERSION } from '../../config/config.ts';
import type { RecordedRequest } from '../options.ts';
import type { WebhookPush } from '../webhooks/queue.ts';
import type { SentWebhook } from '../webhooks/sender.ts';
import type { Flags } from './flags.ts';

/** Styles text for a terminal, or leaves it as it is. */
export type Paint = (style: 'green' | 'yellow' | 'red' | 'dim' | 'bold', text: string) => string;

/** Colours for a terminal, unless `NO_COLOR` holds anything (no-color.org) or the terminal is dumb. */
export function paintFor(isTerminal: boolean, environment: NodeJS.ProcessEnv): Paint {
  const isOff = (environment['NO_COLOR'] ?? '') !== '' || environment['TERM'] === 'dumb';
  if (!isTerminal || isOff) return (_style, text) => text;
  // Decided above for the stream that is written to; Node would look at its own standard output.
  return (style, text) => styleText(style, text, { validateStream: false });
}

export function greeting(url: string, flags: Flags, paint: Paint): string {
  const { apiKeys, webhookUrl, webhookSecret, plays, speed } = flags;
  const keys = apiKeys.length === 1 ? 'one key is' : `${apiKeys.length} keys are`;
  const secret = webhookSecret === undefined ? 'without a secret' : 'with the secret';
  const pace = speed === 1 ? 'in real time' : `${speed} times faster than real time`;
  return [
    paint('bold', `tracking-client-fake ${VERSION}`),
    `  Base URL  ${paint('green', url)}`,
    `  API key   ${apiKeys.length === 0 ? 'any key is' : keys} accepted`,
    `  Webhooks  ${webhookUrl === undefined ? 'none; --webhook-url turns them on' : `${webhookUrl}, ${secret}`}`,
    `  Play      ${plays.join(', then ')}, ${speed === Number.POSITIVE_INFINITY ? 'all at once' : pace}`,
    paint('dim', '  Ctrl-C stops it.'),
  ].join('\n');
}

function statusText(status: number | null, isGood: boolean, paint: Paint): string {
  if (status === null) return paint('red', 'no answer');
  if (isGood) return paint('green', String(status));
  return paint(status < 500 ? 'yellow' : 'red', String(status));
}

/** `what` is padded to the longest method of an endpoint. */
function line(atMs: number, what: string, text: string, end: string, paint: Paint): string {
  const time = new Date(atMs).toTimeString().slice(0, 8);
  return `${paint('dim', time)} ${paint('bold', what.padEnd(6))} ${text} ${paint('dim', '→')} ${end}`;
}

/** How many items a body has, or its number; only what is safe to print, for a body may hold control characters. */
function bodyNote(body: unknown): string | undefined {
  if (Array.isArray(body)) return body.length === 1 ? '1 item' : `${body.length} items`;
  const number: unknown = Object(body).trackingNumber;
  return typeof number === 'string' && /^[\w\-/.]{1,50}$/.test(number) ? number : undefined;
}

export function requestLine(request: RecordedRequest, paint: Paint): string {
  const { method, path, query, body, receivedAtMs, status } = request;
  const search = new URLSearchParams(query).toString();
  const note = bodyNote(body);
  const text = path + (search && `?${search}`) + (note === undefined ? '' : ` ${paint('dim', note)}`);
  const isGood = status !== null && status < 300;
  return line(receivedAtMs, method, text, statusText(status, isGood, paint), paint);
}

function contentOf({ item }: WebhookPush): string {
  if (!('events' in item)) return 'proof of delivery';
  const [newest] = item.events;
  const text = newest?.status ?? newest?.statusMilestone ?? 'no status';
  return item.events.length > 1 ? `${text} (${item.events.length} events)` : text;
}

export function pushLine(
  { status, succeeded, attempt }: SentWebhook,
  pushes: readonly WebhookPush[],
  options: { readonly atMs: number; readonly maxAttempts: number; readonly paint: Paint },
): string {
  const { atMs, maxAttempts, paint } = options;
  const text = pushes.map((push) => {
    const resent = push.isReplay ? paint('dim', ' (resent)') : '';
    return `${push.item.tracker.trackingNumber} ${contentOf(push)}${resent}`;
  });
  const saidNo = status !== null && status < 300 ? ' but success: false' : '';
  const next = attempt >= maxAttempts ? 'given up' : `attempt ${attempt} of ${maxAttempts}`;
  const note = succeeded ? '' : paint('dim', `${saidNo}, ${next}`);
  return line(atMs, 'push', text.join(', '), statusText(status, succeeded, paint) + note, paint);
}
