import { afterEach, describe, expect, test, vi } from 'vitest';
import { EVERY_CALL } from '../support/calls.ts';
import { catchRejection } from '../support/make-client.ts';
import {
  type Behaviour,
  breakOff,
  refusedBaseUrl,
  reset,
  respond,
  respondEmpty,
  silence,
  stall,
  startServer,
} from '../support/scripted-server.ts';
import { stoppedClientFor, wireClient, wireClientFor } from '../support/wire-client.ts';

afterEach(() => {
  vi.useRealTimers();
});

const html = { 'content-type': 'text/html' };
/** Bodies that are not JSON. */
const GARBAGE: [what: string, behaviour: Behaviour][] = [
  ['HTML', respond(200, '<!doctype html><title>Welcome</title>', html)],
  ['HTML that claims to be JSON', respond(200, '<!doctype html>')],
  ['cut-off JSON', respond(200, '{"data":{"trackers":[{"trackerId":')],
  ['two JSON values', respond(200, '{"data":{}}{"data":{}}')],
];
/** Empty bodies, and JSON without the result of any endpoint. */
const NONSENSE: [what: string, behaviour: Behaviour][] = [
  ['null', respond(200, 'null')],
  ['{}', respond(200, '{}')],
  ['[]', respond(200, '[]')],
  ['a number', respond(200, '5')],
  ['a string of JSON', respond(200, '"data"')],
  ['JSON that claims to be HTML', respond(200, '{"data":{}}', html)],
  ['JSON that claims to be text', respond(200, '{"data":{}}', { 'content-type': 'text/plain' })],
  ['an empty body', respondEmpty(200)],
  ['an empty body that claims to be JSON', respondEmpty(200, { 'content-type': 'application/json' })],
  ['spaces', respond(200, '  \n')],
  ['data that is a number', respond(200, '{"data":5}')],
  ['data that is text', respond(200, '{"data":"ok"}')],
];

describe.each(EVERY_CALL)('%s', (name, { call }) => {
  // The status of a resend is enough: after an error the caller would repeat it, and every event would be pushed twice. But a body
  // that is not JSON comes from another server.
  const isStatusEnough = name === 'trackers.resendWebhookEvents';
  const [rejected, accepted] = isStatusEnough ? [GARBAGE, NONSENSE] : [[...GARBAGE, ...NONSENSE], []];
  const [brokenOff, acceptedBrokenOff] = isStatusEnough ? [[], [200]] : [[200], []];

  test.each(rejected)('200 with %s → ResponseValidationError', async (_what, behaviour) => {
    const { client, server } = await wireClientFor(behaviour);
    expect(await catchRejection(call(client))).toMatchObject({
      name: 'ResponseValidationError',
      status: 200,
    });
    expect(server.requests).toHaveLength(1);
  });

  test.each(accepted)('200 to a resend with %s → resolves without a total', async (_what, behaviour) => {
    const { client, server } = await wireClientFor(behaviour);
    expect(await call(client)).toEqual({});
    expect(server.requests).toHaveLength(1);
  });

  test.each(acceptedBrokenOff)('%d to a resend, body breaks off → resolves without a total', async () => {
    const { client, server } = await wireClientFor(breakOff);
    expect(await call(client)).toEqual({});
    expect(server.requests).toHaveLength(1);
  });

  test.each(brokenOff)('%d with a body that breaks off → ConnectionError', async () => {
    const { client } = await wireClientFor(breakOff);
    expect(await catchRejection(call(client))).toMatchObject({
      name: 'ConnectionError',
      neverSent: false,
      message: expect.stringMatching(/^[A-Z]+ http:\/\/127\.0\.0\.1:\d+\/\S* got an incomplete response: /),
      cause: expect.any(Error),
    });
  });

  test('a body that stalls → TimeoutError in phase body', async () => {
    const { client, untilHeaders } = await stoppedClientFor(stall);
    const rejection = catchRejection(call(client, { timeoutMs: 5_000 }));
    await untilHeaders();
    vi.advanceTimersByTime(5_000);
    expect(await rejection).toMatchObject({ name: 'TimeoutError', phase: 'body', timeoutMs: 5_000 });
  });

  test('no response → TimeoutError in phase headers', async () => {
    const { client, untilRequested } = await stoppedClientFor(silence);
    const rejection = catchRejection(call(client, { timeoutMs: 5_000 }));
    await untilRequested();
    vi.advanceTimersByTime(5_000);
    expect(await rejection).toMatchObject({ name: 'TimeoutError', phase: 'headers', timeoutMs: 5_000 });
  });

  test('a reset connection → ConnectionError', async () => {
    const { client } = await wireClientFor(reset);
    expect(await catchRejection(call(client))).toMatchObject({
      name: 'ConnectionError',
      neverSent: false,
      message: expect.stringMatching(/ got no response: /),
    });
  });

  test('a refused connection → ConnectionError with neverSent true', async () => {
    const client = wireClient(await refusedBaseUrl());
    expect(await catchRejection(call(client))).toMatchObject({ name: 'ConnectionError', neverSent: true });
  });

  test.each([301, 302, 303, 307, 308])(
    'a redirect (%d) → an error, and the target gets no request',
    async (status) => {
      const target = await startServer(respond(200, '{}'));
      const { client } = await wireClientFor(respond(status, '', { location: `${target.baseUrl}/stolen` }));
      expect(await catchRejection(call(client))).toMatchObject({ name: 'ApiError', status });
      expect(target.requests).toHaveLength(0);
    },
  );
});
