import { describe, expect, test, vi } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import { MemoryDedupeStore, type WebhookCallbacks } from '../../src/webhooks/index.ts';
import { buildKey, E1, makeInbox, payload, proofOfDelivery, tracking } from './support.ts';

/** Processes bodies one after another: the events that `onEvent` handled, and the last report. */
async function processAll(...bodies: unknown[]) {
  const handled: string[] = [];
  const inbox = makeInbox();
  const reports = [];
  for (const body of bodies) {
    reports.push(
      await inbox.process(body, ({ eventId }, { message }) => {
        handled.push(`${message.tracker.trackerId}/${String(eventId)}`);
      }),
    );
  }
  return { handled, report: reports.at(-1) };
}

const late = { eventId: 'late', occurrenceDatetime: '2021-03-05T10:00:00Z' };
const early = { eventId: 'early', occurrenceDatetime: '2021-03-05T10:00:00+02:00' };

describe('handling once', () => {
  test('new events → each handled once, outcome done', async () => {
    const { handled, report } = await processAll(payload(tracking('t1', 'e1', 'e2')));
    expect(handled).toEqual(['t1/e1', 't1/e2']);
    expect(report).toEqual({
      outcome: 'done',
      handled: 2,
      duplicates: 0,
      deadLettered: 0,
      others: 0,
      failures: [],
      busy: [],
      unavailable: [],
      interrupted: [],
      retryAfterMs: undefined,
      rejected: [],
    });
  });

  test('the same event every week for half a year → handled once, although retainMs is 30 days', async () => {
    let now = 0;
    const inbox = makeInbox({ store: new MemoryDedupeStore({ now: () => now }) });
    const onEvent = vi.fn();
    for (let week = 0; week < 26; week += 1) {
      await inbox.process(E1, { onEvent });
      now += 7 * 24 * 60 * 60 * 1000;
    }
    expect(onEvent).toHaveBeenCalledOnce();
  });

  const twice = { eventId: 'e1' };
  const mixed = payload(tracking('t1', 'e1', 'e2'), tracking('t2', 'e3'));
  const shared = payload(tracking('t2', 'e1'), tracking('t1', 'e1'));
  const repeated = payload(tracking('t1', twice, twice), tracking('t1', 'e1'));
  const apart = payload(tracking('t1', late), tracking('t1', early));

  const between = { eventId: 'between', occurrenceDatetime: '2021-03-05', order: 2 };
  const dated = payload(
    tracking('t1', { ...late, order: 1 }, between),
    tracking('t1', { ...early, order: 3 }),
  );

  test.each<[string, unknown[], string[], object]>([
    ['a date, and known times that contradict `order`', [dated], ['t1/between', 't1/early', 't1/late'], {}],
    ['the same payload again', [E1, E1], ['t1/e1'], { handled: 0, duplicates: 1 }],
    ['new and seen events', [E1, mixed], ['t1/e1', 't1/e2', 't2/e3'], { handled: 2, duplicates: 1 }],
    ['two trackers that share an event id', [shared], ['t1/e1', 't2/e1'], { handled: 2 }],
    ['an event id thrice in one payload', [repeated], ['t1/e1'], { handled: 1, duplicates: 2 }],
    ['a tracker in two items, the late one first', [apart], ['t1/early', 't1/late'], {}],
  ])('%s → each event once, oldest first, tracker by tracker', async (_title, bodies, events, report) => {
    const result = await processAll(...bodies);
    expect(result.handled).toEqual(events);
    expect(result.report).toMatchObject({ outcome: 'done', ...report });
  });
});

test('onEvent → gets the message, the attempt, the key and a signal that has not aborted', async () => {
  const onEvent = vi.fn();
  await makeInbox().process(E1, onEvent);
  expect(onEvent.mock.lastCall).toMatchObject([
    { eventId: 'e1' },
    { attempt: 1, key: buildKey('e1'), message: { kind: 'events' }, signal: { aborted: false } },
  ]);
});

test('onEvents with new and known events → called once with the new events and their keys, oldest first', async () => {
  const onEvents = vi.fn();
  const inbox = makeInbox();
  await inbox.process(E1, { onEvents });
  const report = await inbox.process(payload(tracking('t1', late, 'e1', early)), { onEvents });
  expect(onEvents).toHaveBeenCalledTimes(2);
  expect(onEvents.mock.lastCall).toMatchObject([
    { tracker: { trackerId: 't1' }, events: [early, late] },
    { attempt: 1, keys: [buildKey('early'), buildKey('late')] },
  ]);
  expect(report).toMatchObject({ handled: 2, duplicates: 1 });
});

describe('onProofOfDelivery', () => {
  const first = proofOfDelivery('t1', 'm1');
  const other = { ...first, data: { ...first.data, status: 'unavailable' } };

  test.each([
    ['the same proof in another message, as a resend has it', proofOfDelivery('t1', 'm2'), 1, 1],
    ['another proof in the same message', other, 2, 0],
  ])('a proof, then %s → handled: $2, duplicates: $3', async (_title, second, count, duplicates) => {
    const onProofOfDelivery = vi.fn();
    const inbox = makeInbox();
    await inbox.process(payload(first), { onProofOfDelivery });
    const report = await inbox.process(payload(second), { onProofOfDelivery });
    expect(onProofOfDelivery).toHaveBeenCalledTimes(count);
    expect(onProofOfDelivery.mock.calls[0]).toMatchObject([
      { data: { status: 'found' } },
      { attempt: 1, key: expect.stringMatching(/^t1:sha256-/) },
    ]);
    expect(report).toMatchObject({ outcome: 'done', duplicates });
  });
});

describe('onOther', () => {
  const nothing = () => {};

  test.each<[string, object, WebhookCallbacks, object]>([
    ['an unknown topic', { metadata: { topic: 'tracking/weather' } }, {}, { kind: 'other' }],
    ['events that no callback wants', tracking('t1', 'e1'), {}, { kind: 'events' }],
    ['no events, beside onEvent', tracking('t1'), { onEvent: nothing }, { kind: 'events', events: [] }],
    ['no events, beside onEvents', tracking('t1'), { onEvents: nothing }, { kind: 'events', events: [] }],
    ['an unwanted proof', proofOfDelivery('t1'), { onEvent: nothing }, { kind: 'proofOfDelivery' }],
  ])('%s → called with it, outcome done', async (_title, item, callbacks, message) => {
    const onOther = vi.fn();
    const report = await makeInbox().process(payload(item), { ...callbacks, onOther });
    expect(onOther).toHaveBeenCalledExactlyOnceWith(expect.objectContaining(message));
    expect(report).toMatchObject({ outcome: 'done', handled: 0, others: 1 });
  });

  test('no onOther → the item is counted, outcome done, even after an abort', async () => {
    const body = payload(tracking('t1'), proofOfDelivery('t2'));
    const report = await makeInbox().process(body, nothing, { signal: AbortSignal.abort() });
    expect(report).toMatchObject({ outcome: 'done', others: 2 });
  });

  test('an abort during onOther → the next message is left to the redelivery, because a 200 would lose it', async () => {
    const shutdown = new AbortController();
    const onOther = vi.fn(() => shutdown.abort());
    const body = payload(tracking('t1'), tracking('t2'));
    const report = await makeInbox().process(body, { onOther }, { signal: shutdown.signal });
    expect(onOther).toHaveBeenCalledOnce();
    expect(report.outcome).toBe('interrupted');
  });

  test('an onOther that rejects after an abort → interrupted, not failed', async () => {
    const shutdown = new AbortController();
    const onError = vi.fn();
    const onOther = () => {
      shutdown.abort();
      return Promise.reject(new Error('the database is closed'));
    };
    const report = await makeInbox({ onError }).process(
      payload(tracking('t1')),
      { onOther },
      { signal: shutdown.signal },
    );
    expect(report).toMatchObject({ outcome: 'interrupted', failures: [] });
    expect(onError).not.toHaveBeenCalled();
  });
});

const MISMATCHED = '`trackings[0]` of a webhook is handled, although some fields have an unexpected type: ';
const oddOrder = { eventId: 'e1', order: 'third' };

/** Processes bodies one after another; returns the messages of `onError`, and the reports. */
async function tell(...items: unknown[][]) {
  const onError = vi.fn();
  const inbox = makeInbox({ onError });
  const reports = [];
  for (const list of items) reports.push(await inbox.process(payload(...list), () => {}));
  for (const [, context] of onError.mock.calls) expect(context).toEqual({ operation: 'parse', keys: [] });
  return { messages: onError.mock.calls.map(([error]) => String(error.message)), reports };
}

describe('invalid bodies', () => {
  test('rejected items → onError is called for each, with its first issues', async () => {
    const broken = tracking('t1', 'e1', { eventId: 1 }, { eventId: 2 }, { eventId: 3 }, { eventId: 4 });
    const { messages } = await tell([{}, broken, null]);
    expect(messages).toEqual([
      '`trackings[0]` of a webhook is invalid, and the invalid part is not handled: Expected `tracker` to be an object, got undefined; ' +
        'Expected `events` to be an array, got undefined',
      expect.stringMatching(
        /^`trackings\[1\]` of a webhook is invalid, and the invalid part is not handled: (Expected `events.*?; ){3}and 1 more problem$/,
      ),
      '`trackings[2]` of a webhook is invalid, and the invalid part is not handled: Expected `trackings[2]` to be an object, got null',
    ]);
  });

  test('rejected items, repeatedly → onError is called each time, because each may be a lost event', async () => {
    expect((await tell([null], [null])).messages).toHaveLength(2);
  });

  test('a field that breaks the schema → handled and done, reported to onError', async () => {
    const { messages, reports } = await tell([tracking('t1', oddOrder)]);
    expect(reports).toMatchObject([{ outcome: 'done', handled: 1, rejected: [] }]);
    expect(messages).toEqual([
      MISMATCHED + 'Expected `events[0].order` to be a number, got a string of 5 characters',
    ]);
  });

  test('two wrong fields in one message → reported to onError once, together', async () => {
    const { messages } = await tell([tracking('t1', { ...oddOrder, location: 5 })]);
    expect(messages).toEqual([expect.stringMatching(/`events\[0\]\.order`.*; .*`events\[0\]\.location`/)]);
  });

  test('the same wrong field in two webhooks, then a second wrong field → reported to onError once each', async () => {
    const { messages } = await tell(
      [tracking('t1', oddOrder)],
      [tracking('t2', 'e2', oddOrder)],
      [tracking('t1', { ...oddOrder, location: 5 })],
    );
    expect(messages).toEqual([
      expect.stringContaining('`events[0].order`'),
      MISMATCHED + 'Expected `events[0].location` to be a string, got a number',
    ]);
  });

  test('no onError → one line on console.error that shows no value', async () => {
    const write = vi.spyOn(console, 'error').mockImplementation(() => {});
    const body = payload({ tracker: 'a-name', events: ['a-place'] });
    await makeInbox({ onError: undefined }).process(body, () => {});
    expect(write).toHaveBeenCalledOnce();
    const [line, error] = write.mock.lastCall ?? [];
    expect(line).toContain(`[tracking-client] ${error.message}`);
    expect(error).toMatchObject({ name: 'WebhookParseError' });
    expect(line).not.toMatch(/a-name|a-place/);
    write.mockRestore();
  });
});

test.each<[string, Record<string, unknown>, RegExp]>([
  ['no store', { store: undefined }, /`store`/],
  ['a store without commit', { store: { claim() {}, release() {} } }, /`commit`/],
  ['a lease of 0', { leaseMs: 0 }, /`leaseMs`/],
  ['a retention below 7 days', { retainMs: 7 * 86_400_000 - 1 }, /`retainMs` .* milliseconds .*7 days/],
  ['maxAttempts without onDeadLetter', { maxAttempts: 3 }, /`onDeadLetter`/],
  ['a misspelt option', { leaseMS: 5 }, /leaseMs/],
])('inbox with %s → ConfigurationError that names the option', (_title, options, message) => {
  const build = () => makeInbox(options);
  expect(build).toThrow(ConfigurationError);
  expect(build).toThrow(message);
});

test('a retention of exactly 7 days → accepted', () => {
  expect(() => makeInbox({ retainMs: 7 * 86_400_000 })).not.toThrow();
});

test.each<[string, unknown, unknown, RegExp]>([
  ['callbacks that are text', 'log', {}, /`callbacks`/],
  ['a misspelt callback', { onevent() {} }, {}, /Unknown option `onevent`/],
  ['no callback', {}, {}, /^No webhook callback is set; /],
  ['onEvent and onEvents', { onEvent() {}, onEvents() {} }, {}, /are set; pass only one/],
  ['a wait of NaN', () => {}, { busyTimeoutMs: Number.NaN }, /`busyTimeoutMs`/],
  ['a misspelt option', () => {}, { busytimeoutMs: 5 }, /busyTimeoutMs/],
  ['text as options', () => {}, 'soon', /`options`/],
])('process with %s → ConfigurationError', async (_title, callbacks, options, message) => {
  // The wrong types on purpose: JavaScript callers have no compiler.
  const processing = makeInbox().process(E1, callbacks as never, options as never);
  await expect(processing).rejects.toThrow(ConfigurationError);
  await expect(processing).rejects.toThrow(message);
});
