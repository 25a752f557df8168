import type { RecordedRequest } from '../service/request-log.ts';
import type { WebhookPush } from '../webhooks/webhook-queue.ts';
import type { SentWebhook } from '../webhooks/webhook-sender.ts';
import type { Paint } from './paint.ts';

/** Wide enough for the longest method that answers and for `push`. */
const WHAT_WIDTH = 6;

function timeOf(atMs: number): string {
  const at = new Date(atMs);
  return [at.getHours(), at.getMinutes(), at.getSeconds()]
    .map((part) => String(part).padStart(2, '0'))
    .join(':');
}

function paintedStatus(status: number | null, isGood: boolean, paint: Paint): string {
  if (status === null) return paint.bad('no answer');
  if (isGood) return paint.good(String(status));
  return (status < 500 ? paint.doubtful : paint.bad)(String(status));
}

/** A tracking number that is safe to print; anything else in a body may hold control characters. */
function printableNumber(body: unknown): string | undefined {
  const isRecord = typeof body === 'object' && body !== null && 'trackingNumber' in body;
  const number = isRecord ? body.trackingNumber : undefined;
  return typeof number === 'string' && /^[\w\-/.]{1,50}$/.test(number) ? number : undefined;
}

function bodyNote(body: unknown): string | undefined {
  if (Array.isArray(body)) return body.length === 1 ? '1 item' : `${body.length} items`;
  return printableNumber(body);
}

function line(atMs: number, what: string, text: string, end: string, paint: Paint): string {
  return `${paint.faint(timeOf(atMs))} ${paint.strong(what.padEnd(WHAT_WIDTH))} ${text} ${paint.faint('→')} ${end}`;
}

/** One line about a request. */
export function requestLine(request: RecordedRequest, paint: Paint): string {
  const { method, path, query, body, receivedAtMs, status } = request;
  const search = new URLSearchParams(query).toString();
  const note = bodyNote(body);
  const text = [
    search === '' ? path : `${path}?${search}`,
    note === undefined ? [] : paint.faint(note),
  ].flat();
  const isGood = status !== null && status < 300;
  return line(receivedAtMs, method, text.join(' '), paintedStatus(status, isGood, paint), paint);
}

function newsOf({ item }: WebhookPush): string {
  if (!('events' in item)) return 'proof of delivery';
  const [newest] = item.events;
  const news = newest?.status ?? newest?.statusMilestone ?? 'no status';
  return item.events.length > 1 ? `${news} (${item.events.length} events)` : news;
}

/** One line about a push, from which its receiver can be found wanting. */
export function pushLine(
  sent: SentWebhook,
  pushes: readonly WebhookPush[],
  {
    atMs,
    maxAttempts,
    paint,
  }: { readonly atMs: number; readonly maxAttempts: number; readonly paint: Paint },
): string {
  const text = pushes.map((push) => {
    const replay = push.isReplay ? paint.faint(' (resent)') : '';
    return `${push.item.tracker.trackingNumber} ${newsOf(push)}${replay}`;
  });
  const saidNo = !sent.succeeded && sent.status !== null && sent.status < 300 ? ' but success: false' : '';
  const isLast = sent.attempt >= maxAttempts;
  const next = isLast ? 'given up' : `attempt ${sent.attempt} of ${maxAttempts}`;
  const note = sent.succeeded ? '' : paint.faint(`${saidNo}, ${next}`);
  return line(atMs, 'push', text.join(', '), paintedStatus(sent.status, sent.succeeded, paint) + note, paint);
}
