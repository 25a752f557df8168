import { describe, expect, test, vi } from 'vitest';
import { makeInbox, payload, tracking } from './support.ts';

const MISMATCHED = 'Item 0 of a webhook is handled as usual, but has fields of an unexpected type: ';
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
      'Item 0 of a webhook was rejected: Expected `tracker` to be an object, got undefined; ' +
        'Expected `events` to be an array, got undefined',
      expect.stringMatching(/^Item 1 of a webhook was rejected: (Expected `events.*?; ){3}and 1 more$/),
      'Item 2 of a webhook was rejected: Expected `trackings[2]` to be an object, got null',
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
    expect(line).toContain(`[tracking-client] A webhook is not as documented: ${error.message}`);
    expect(error).toMatchObject({ name: 'WebhookParseError' });
    expect(line).not.toMatch(/a-name|a-place/);
    write.mockRestore();
  });
});
