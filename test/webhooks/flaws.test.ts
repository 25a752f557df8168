import { expect, test } from 'vitest';
import { parseWebhook } from '../../src/webhooks/index.ts';
import { makeInbox, payload, tracking } from './support.ts';

const oddOrder = (eventId: string) => ({ eventId, order: 'x' });

test.each([1, 20, 21, 1_000])(
  '%d events with a field of another kind → at most the first 20 are told',
  (count) => {
    const events = Array.from({ length: count }, (_, index) => oddOrder(`e${index}`));
    const { mismatched } = parseWebhook({ trackerId: 't1', events });
    expect(mismatched[0]?.issues.map(({ path }) => path)).toEqual(
      events.slice(0, 20).map((_, index) => ['events', index, 'order']),
    );
  },
);

test('one item with 1,000 issues of one field → the first 20, and how many more', () => {
  const shipment = { trackingNumbers: Array.from({ length: 1_000 }, () => 0) };
  const { mismatched } = parseWebhook({ trackerId: 't1', events: [], shipment });
  expect(mismatched[0]?.issues).toHaveLength(21);
  expect(mismatched[0]?.issues.at(-1)?.message).toBe('Expected no more issues, got at least 980 more');
});

test.each([99, 100, 1_000])(
  '%d items with a field of another kind → at most the first 100 are told',
  (count) => {
    const items = Array.from({ length: count }, (_, index) => tracking(`t${index}`, oddOrder('e1')));
    const { mismatched } = parseWebhook(payload(...items));
    expect(mismatched.map(({ index }) => index)).toEqual(items.slice(0, 100).map((_, index) => index));
  },
);

test('1,000 items with two broken events each → 100 of them and how many more, each counted once', () => {
  const items = Array.from({ length: 1_000 }, () => ({ trackerId: 't1', events: [0, 0] }));
  expect(parseWebhook(payload(...items)).rejected.at(-1)?.issues).toMatchObject([
    { message: 'Expected no more items with issues, got at least 900 more' },
  ]);
});

/** What an inbox tells its observer of webhooks whose event has so many fields of another kind. */
async function toldOf(...fieldCounts: number[]): Promise<string[]> {
  const told: string[] = [];
  const inbox = makeInbox({ onError: (error) => told.push(String(error)) });
  const odd = { order: 'x', location: 5, courierCode: 5, statusCode: 5, statusMilestone: 5 };
  for (const count of fieldCounts) {
    const fields = Object.fromEntries(Object.entries(odd).slice(0, count));
    await inbox.process(payload(tracking('t1', { eventId: 'e1', ...fields })), () => {});
  }
  return told;
}

test.each([
  [3, false],
  [4, true],
])('%d fields of another kind → three are named, and that there are more: %s', async (count, hasMore) => {
  const [told = ''] = await toldOf(count);
  expect(told.match(/Expected/g)).toHaveLength(3);
  expect(told.endsWith('; and more')).toBe(hasMore);
});

test('five fields of another kind, twice → those that were not named are named the second time', async () => {
  const told = await toldOf(5, 5, 5);
  const named = told.map((text) => [...text.matchAll(/events\[0\]\.(\w+)/g)].map(([, field]) => field));
  expect(named.map(({ length }) => length)).toEqual([3, 2]);
  expect(new Set(named.flat()).size).toBe(5);
});
