import { describe, expect, test, vi } from 'vitest';
import { quoteValue } from '../src/common/messages.ts';
import type { TrackingClient } from '../src/index.ts';
import { inboxTableSql } from '../src/postgres/table.ts';
import { createFakeTrackingService } from '../src/testing/index.ts';
import { createWebhookHandler } from '../src/webhooks/index.ts';
import { API_KEY, catchRejection, makeClient } from './support/make-client.ts';

const trackingNumber = 'LA680658838NL';

/** The message with which a call or a constructor fails. */
async function readMessage(fail: () => unknown): Promise<string> {
  try {
    const error = await catchRejection(Promise.resolve(fail()));
    return error instanceof Error ? error.message : String(error);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Calls with values that the types refuse, as a program without types would. */
type Untyped = (client: TrackingClient, value: never) => unknown;
const create =
  (field: string): Untyped =>
  ({ trackers }, value) =>
    trackers.create({ trackingNumber, [field]: value });

describe('values that are quoted', () => {
  test.each<[kind: string, call: Untyped, value: unknown, got: string]>([
    ['a tracking number', create('trackingNumber'), 'AB 12', "' ' at position 3 of 'AB 12'"],
    [
      'a tracking number in a path',
      ({ trackers }, number) => trackers.resultsByTrackingNumber(number),
      'AB 123',
      "' ' at position 3 of 'AB 123'",
    ],
    ['a country code', create('originCountryCode'), 'Germany', "'Germany'"],
    ['another country code', create('destinationCountryCode'), 'Österreich', "'Österreich'"],
    ['a courier code', create('courierCode'), ' ', "' '"],
    ['a date', create('shippingDate'), '15.11.2026', "'15.11.2026'"],
    ['an id', ({ trackers }, id) => trackers.get(id), '../couriers', "'../couriers'"],
    ['an id that is a number', ({ trackers }, id) => trackers.get(id), 42, '42'],
    ['the id of a poll', ({ trackers }, id) => trackers.waitUntilStopped(id), 'a/../b', "'a/../b'"],
    ['a client tracker id', create('clientTrackerId'), 42, '42'],
    [
      'an enum of the service',
      ({ trackers }, searchBy) => trackers.get('t', { searchBy }),
      'number',
      "'number'",
    ],
    ['an enum option', ({ trackers }, priority) => trackers.get('t', { priority }), 'high', "'high'"],
    ['a numeric limit', ({ trackers }, limit) => trackers.list({ limit }), 501, '501'],
    ['a numeric limit as text', ({ trackers }, limit) => trackers.list({ limit }), '50', "'50'"],
    ['a method', (client, method) => client.request({ method, path: '/a' }), 'FETCH', "'FETCH'"],
    ['a path', (client, path) => client.request({ method: 'GET', path }), 'couriers', "'couriers'"],
    [
      'a path, without its query',
      (client, path) => client.request({ method: 'GET', path }),
      '/a?email=a@b.test#c',
      "'/a?…'",
    ],
    ['the name of a table', (_client, table) => inboxTableSql(table), 'my-inbox', "'my-inbox'"],
    [
      'the name of an endpoint',
      (_client, endpoint) => createFakeTrackingService().fail(endpoint, { status: 500 }),
      'trackers.creat',
      "'trackers.creat'",
    ],
    ['a log level', (_client, logLevel) => makeClient(undefined, { logLevel }), 'verbos', "'verbos'"],
  ])('%s → the message ends with the value', async (_kind, call, value, got) => {
    const { client } = makeClient();
    // Sound for a test of what callers without types pass.
    const message = await readMessage(() => call(client, value as never));
    expect(message).toMatch(/^Expected `/);
    expect(message.slice(message.indexOf(', got ')).slice(6)).toBe(got);
  });

  test('the name of an unknown option → named, with the known options', async () => {
    const { client } = makeClient();
    const options: object = { timeout: 5 };
    expect(await readMessage(() => client.trackers.get('t', options))).toMatch(/^Unknown option `timeout`; /);
    const long: object = { ['x'.repeat(41)]: 5 };
    expect(await readMessage(() => client.trackers.get('t', long))).toMatch(
      /^Unknown option with a string of 41 characters as its name; /,
    );
  });
});

describe('the text of a duration', () => {
  test.each([
    ['5000ms', "'5000ms'"],
    ['3H', "'3H'"],
    ['keys', 'a string of 4 characters'],
    ['hunter2s', 'a string of 8 characters'],
    ['5s-hunter2', 'a string of 10 characters'],
    ['1234567s', 'a string of 8 characters'],
  ])('timeoutMs %j → got %s', async (timeoutMs, got) => {
    const { client } = makeClient();
    // @ts-expect-error -- only a number is valid
    const message = await readMessage(() => client.trackers.get('t', { timeoutMs }));
    expect(message.slice(message.indexOf(', got '))).toBe(`, got ${got}`);
  });
});

describe('values that are not quoted', () => {
  const SECRET = 'hunter2';
  test.each<[kind: string, call: Untyped, value: unknown]>([
    ['an e-mail address', create('recipient'), { email: SECRET }],
    ['the name of a recipient', create('recipient'), { name: SECRET.repeat(20) }],
    ['the name of a recipient in a list', create('recipient'), { name: [SECRET] }],
    ['a recipient', create('recipient'), SECRET],
    ['a reference', create('shipmentReference'), SECRET.repeat(20)],
    ['a post code', create('destinationPostCode'), SECRET.repeat(5)],
    ['a post code with another character', create('destinationPostCode'), `${SECRET}#`],
    ['a title in a list', create('title'), [SECRET]],
    ['a whole input', ({ trackers }, input) => trackers.create(input), SECRET],
    ['a query', (client, query) => client.request({ method: 'GET', path: '/a', query }), SECRET],
    [
      'a URL as a path',
      (client, path) => client.request({ method: 'GET', path }),
      `https://a:${SECRET}@b.test/c`,
    ],
    ['a duration as text', ({ trackers }, timeoutMs) => trackers.get('t', { timeoutMs }), SECRET],
    [
      'a duration of a webhook handler',
      async (_client, deadlineMs) => createWebhookHandler({ secret: 'whsec', onEvent() {}, deadlineMs }),
      SECRET,
    ],
    ['a base URL', (_client, baseUrl) => makeClient(undefined, { baseUrl }), `a:${SECRET}@b.test`],
    ['a key', (_client, apiKey) => makeClient(undefined, { apiKey }), `${SECRET}"`],
    ['a header', ({ trackers }, headers) => trackers.get('t', { headers }), { 'x-a': `${SECRET}\nb` }],
    [
      'a value of a response',
      (_client, createdAt) =>
        makeClient(
          { body: { data: { tracker: { trackerId: 't', isTracked: createdAt } } } },
          { invalidResponse: 'throw' },
        ).client.trackers.get('t'),
      SECRET,
    ],
  ])('%s → the message describes the value', async (_kind, call, value) => {
    const { client } = makeClient();
    // Sound for a test of what callers without types pass.
    const message = await readMessage(() => call(client, value as never));
    expect(message).toMatch(/(^|Expected )`/);
    expect(message).not.toContain(SECRET);
  });
});

describe('the key in a quoted value', () => {
  const inNumber = `A ${API_KEY}`;
  test.each<[what: string, call: Untyped, value: unknown]>([
    ['a tracking number', create('trackingNumber'), inNumber],
    ['an id', ({ trackers }, id) => trackers.get(id), `../${API_KEY}`],
    ['the id of a poll', ({ trackers }, id) => trackers.waitUntilStopped(id), `../${API_KEY}`],
    ['a path', (client, path) => client.request({ method: 'GET', path }), API_KEY],
    ['an enum option', ({ trackers }, priority) => trackers.get('t', { priority }), API_KEY],
    ['an enum option of a poll', ({ trackers }, searchBy) => trackers.poll('t', { searchBy }), API_KEY],
    ['the name of an option', ({ trackers }, value) => trackers.get('t', { [value]: 1 }), API_KEY],
    [
      'the name of a hook',
      (_client, name) => makeClient(undefined, { hooks: { [name]: () => {} } }),
      API_KEY,
    ],
    ['an option of the client', (_client, logLevel) => makeClient(undefined, { logLevel }), API_KEY],
  ])('%s → masked in the message and in the issues', async (_what, call, value) => {
    const { client } = makeClient();
    // Sound for a test of what callers without types pass.
    const message = await readMessage(() => call(client, value as never));
    expect(message).toContain('[redacted]');
    expect(message).not.toContain(API_KEY);
  });

  test('an input of createMany → masked in its outcome', async () => {
    const { client } = makeClient();
    for await (const outcome of client.trackers.createMany([{ trackingNumber: inNumber }])) {
      expect(JSON.stringify(outcome)).toContain("of 'A [redacted]'");
    }
    expect.assertions(1);
  });

  test('issues of an error → masked', async () => {
    const { client } = makeClient();
    const error = await catchRejection(client.trackers.create({ trackingNumber: inNumber }));
    expect(JSON.stringify(error)).not.toContain(API_KEY);
    expect(error).toMatchObject({ issues: [{ message: expect.stringContaining("of 'A [redacted]'") }] });
  });

  test('a key that a function returned → masked from the first call on', async () => {
    const { client } = makeClient({ body: { data: [] } }, { apiKey: () => API_KEY });
    await client.couriers.list();
    const error = await catchRejection(client.trackers.create({ trackingNumber: inNumber }));
    expect(error).toMatchObject({ message: expect.stringContaining("of 'A [redacted]'") });
  });

  test('the variable TRACKING_LOG → masked in the warning', () => {
    vi.stubEnv('TRACKING_LOG', API_KEY);
    const warn = vi.fn();
    makeClient(undefined, { logger: { debug() {}, info() {}, warn, error() {} }, logLevel: undefined });
    expect(warn.mock.calls).toEqual([[expect.stringContaining("got '[redacted]'; the log level")]]);
  });
});

test.each([
  ['40 characters', 'x'.repeat(40), `'${'x'.repeat(40)}'`],
  ['41 characters', 'x'.repeat(41), 'a string of 41 characters'],
  ['other scripts and symbols', 'ü日本🙂', "'ü日本🙂'"],
  ['an empty string', '', 'an empty string'],
  ['a line break', 'a\nb', 'a string of 3 characters'],
  ['a line separator', 'a\u2028b', 'a string of 3 characters'],
  ['a tab', 'a\tb', 'a string of 3 characters'],
  ['a terminal code', '\u001b[2J', 'a string of 4 characters'],
  ['a mark that turns the direction of text', 'a\u202eb', 'a string of 3 characters'],
  ['half of a surrogate pair', '\ud800', 'a string of 1 character'],
])('quoteValue, %s → %j becomes %s', (_what, value, shown) => {
  expect(quoteValue(value)).toBe(shown);
});
