import { describe, expect, it } from 'vitest';
import { greeting, pushLine, requestLine } from '../../src/cli/fake-output.ts';
import { coloursFor } from '../../src/cli/terminal.ts';
import {
  buildEvent,
  buildProofOfDelivery,
  buildTracker,
  buildWebhookMessage,
  type QueuedPush,
  type RecordedRequest,
  type SentWebhook,
} from '../../src/testing/index.ts';
import { parsed } from './parsed.ts';

const colours = coloursFor(false, {});
const AT_MS = new Date(2026, 2, 10, 9, 5, 7).getTime();

function request(fields: Partial<RecordedRequest>): string {
  const base: RecordedRequest = {
    endpoint: undefined,
    method: 'GET',
    path: '/public/v1/couriers',
    query: {},
    body: undefined,
    headers: {},
    receivedAtMs: AT_MS,
    requestId: 'r1',
    status: 200,
    failure: undefined,
    error: undefined,
  };
  return requestLine({ ...base, ...fields }, colours);
}

const tracker = buildTracker({ trackingNumber: 'RR123456785CN' });

function eventsPush(...statuses: string[]): QueuedPush {
  const item = buildWebhookMessage({ tracker, events: statuses.map((status) => buildEvent({ status })) });
  return { trackerId: tracker.trackerId, item, isReplay: false, attempts: [] };
}

function push(sent: Partial<SentWebhook>, pushes: readonly QueuedPush[] = [eventsPush('Delivered')]): string {
  const base: SentWebhook = { messageIds: ['m1'], attempt: 1, status: 200, succeeded: true };
  return pushLine({ ...base, ...sent }, pushes, { atMs: AT_MS, maxAttempts: 10, colours });
}

describe('requestLine', () => {
  it('a request without a body → time, method, path and status', () => {
    expect(request({})).toBe('09:05:07 GET    /public/v1/couriers → 200');
  });

  it('a query → shown encoded', () => {
    expect(request({ query: { page: '1', q: 'a b\u001b' } })).toContain(
      '/public/v1/couriers?page=1&q=a+b%1B →',
    );
  });

  it('a path with bytes that a terminal obeys → they are not printed', () => {
    expect(request({ path: '/public/v1/\u009b2J' })).toBe('09:05:07 GET    /public/v1/ → 200');
  });

  it('a creation → its tracking number', () => {
    expect(request({ method: 'POST', body: { trackingNumber: 'RR123456785CN' }, status: 201 })).toBe(
      '09:05:07 POST   /public/v1/couriers RR123456785CN → 201',
    );
  });

  it('a bulk creation → how many items', () => {
    expect(request({ body: [{}, {}] })).toContain(' 2 items →');
    expect(request({ body: [{}] })).toContain(' 1 item →');
  });

  it('a tracking number with control characters → not shown', () => {
    expect(request({ body: { trackingNumber: 'RR\u001b[2J' } })).toBe(
      '09:05:07 GET    /public/v1/couriers → 200',
    );
  });

  it('a broken connection → no answer, and how it was made to fail', () => {
    expect(request({ status: null })).toMatch(/→ no answer$/);
    expect(request({ status: null, failure: 'reset' })).toMatch(/→ no answer reset$/);
  });

  it('a rejected request → its code and why', () => {
    const error = { code: 'validation_error', message: 'Expected `page` to be a number\u001b[2J' };
    expect(request({ status: 400, error })).toMatch(
      /→ 400 validation_error: Expected `page` to be a number$/,
    );
    expect(request({ status: 404, error: { code: 'tracker_not_found' } })).toMatch(
      /→ 404 tracker_not_found$/,
    );
  });
});

describe('pushLine', () => {
  it('an accepted push → number, newest status and answer', () => {
    expect(push({})).toBe('09:05:07 push   RR123456785CN Delivered → 200');
  });

  it('several events → how many', () => {
    expect(push({}, [eventsPush('Delivered', 'In transit')])).toContain('Delivered (2 events) →');
  });

  it('an event text with escape codes → they are not printed', () => {
    const text = push({}, [eventsPush('at\u001b[2J home\u009b31m\u202e\r\nnow')]);
    expect(text).toBe('09:05:07 push   RR123456785CN at home now → 200');
  });

  it('a proof of delivery → says so', () => {
    const item = buildProofOfDelivery({ tracker });
    expect(push({}, [{ trackerId: 't', item, isReplay: false, attempts: [] }])).toContain(
      'proof of delivery →',
    );
  });

  it('a resent push → says so', () => {
    expect(push({}, [{ ...eventsPush('Delivered'), isReplay: true }])).toContain('Delivered (resent) →');
  });

  it('a refused push → which attempt of how many', () => {
    expect(push({ status: 500, succeeded: false, attempt: 2 })).toMatch(/→ 500, attempt 2 of 10$/);
  });

  it('a last attempt without an answer → given up', () => {
    expect(push({ status: null, succeeded: false, attempt: 10 })).toMatch(/→ no answer, given up$/);
  });

  it('200 with success: false → says why it counts as refused', () => {
    expect(push({ succeeded: false })).toMatch(/→ 200 but success: false, attempt 1 of 10$/);
  });
});

const URL = 'http://127.0.0.1:4010/public/v1';

function greet(...args: string[]): string {
  return greeting(URL, parsed(['fake', ...args]), colours);
}

describe('greeting', () => {
  it('no flags → where to send requests, and what will happen', () => {
    const text = greet();
    expect(text).toContain(`Base URL  ${URL}`);
    expect(text).toContain('any key is accepted');
    expect(text).toContain('none; --webhook-url turns them on');
    expect(text).toContain('delivered, in real time');
  });

  it('a secret and keys → counted, never shown', () => {
    const text = greet('--webhook-url', 'http://h/', '--webhook-secret', 'hush-1', '--api-key', 'key-1');
    expect(text).toContain('http://h/, with the secret');
    expect(text).toContain('one key is accepted');
    expect(text).not.toMatch(/hush-1|key-1/);
  });

  it('something to copy → for an app, and for a terminal; a key that was given is not in it', () => {
    expect(greet()).toContain(`export TRACKING_BASE_URL=${URL} TRACKING_API_KEY=any\n`);
    expect(greet()).toContain(`curl -H "Authorization: Bearer any" ${URL}/couriers`);
    expect(greet('--api-key', 'key-1')).toContain(`Bearer $TRACKING_API_KEY" ${URL}/couriers`);
    expect(greet('--api-key', 'key-1')).not.toContain('TRACKING_API_KEY=any');
  });

  it('no play → where events come from', () => {
    expect(greet('--play', 'none')).toContain('Play      none; events come from POST /__fake/events');
  });

  it('two plays at a speed → in turn', () => {
    expect(greet('--play', 'customs', '--play', 'delivered', '--speed', '60')).toContain(
      'customs, then delivered, 60 times faster than real time',
    );
  });

  it('speed Infinity → all at once', () => {
    expect(greet('--speed', 'Infinity')).toContain('delivered, all at once');
  });
});

describe('coloursFor', () => {
  it('a terminal → coloured', () => {
    expect(coloursFor(true, { TERM: 'xterm', NO_COLOR: '' }).green('200')).toBe('\u001b[32m200\u001b[39m');
  });

  it.each([
    ['no terminal', false, {}],
    ['NO_COLOR', true, { NO_COLOR: '1' }],
    ['a dumb terminal', true, { TERM: 'dumb' }],
  ])('%s → plain', (_, isTerminal, environment) => {
    expect(coloursFor(isTerminal, environment).red('500')).toBe('500');
  });
});
