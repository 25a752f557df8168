import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { InboxErrorContext } from '../../src/webhooks/processor.ts';
import { failingOn, makeInbox, payload, proofOfDelivery, tracking } from './support.ts';

const oddOrder = { eventId: 'e1', order: 'third' };

/** An inbox that writes down what it tells its observer. */
function makeTellingInbox() {
  const told: (InboxErrorContext & { readonly message: string })[] = [];
  const inbox = makeInbox({
    onError: (error, context) => {
      told.push({ ...context, message: error instanceof Error ? error.message : String(error) });
    },
  });
  return { inbox, told };
}

describe('what a body should not be', () => {
  test('rejected items → each told to onError once, with its first issues', async () => {
    const { inbox, told } = makeTellingInbox();
    const broken = tracking('t1', 'e1', { eventId: 1 }, { eventId: 2 }, { eventId: 3 }, { eventId: 4 });
    await inbox.process(payload({}, broken, null), () => {});
    expect(told).toEqual([
      {
        operation: 'parse',
        keys: [],
        message:
          'Rejected item 0 of a webhook: Expected `tracker` to be an object, got undefined; ' +
          'Expected `events` to be an array, got undefined',
      },
      expect.objectContaining({
        message: expect.stringMatching(
          /^Rejected item 1 of a webhook: (Expected `events.*?; ){3}and 1 more$/,
        ),
      }),
      expect.objectContaining({
        message: 'Rejected item 2 of a webhook: Expected `trackings[2]` to be an object, got null',
      }),
    ]);
  });

  test('rejected items, again and again → told each time, for each may be an event that is lost', async () => {
    const { inbox, told } = makeTellingInbox();
    await inbox.process(payload(null), () => {});
    await inbox.process(payload(null), () => {});
    expect(told).toHaveLength(2);
  });

  test('a field of another kind → handled and done, told to onError', async () => {
    const { inbox, told } = makeTellingInbox();
    const { attempts, handler } = failingOn('none');
    const report = await inbox.process(payload(tracking('t1', oddOrder)), handler);
    expect(report).toMatchObject({ outcome: 'done', handled: 1, rejected: [] });
    expect(attempts).toEqual(['e1#1']);
    expect(told).toEqual([
      {
        operation: 'parse',
        keys: [],
        message:
          'Kept fields of item 0 of a webhook: Expected `events[0].order` to be a number, got a string of 5 characters',
      },
    ]);
  });

  test('the same field again, in another place → told once', async () => {
    const { inbox, told } = makeTellingInbox();
    await inbox.process(payload(tracking('t1', oddOrder)), () => {});
    await inbox.process(payload(tracking('t2', 'e2', oddOrder)), () => {});
    expect(told).toHaveLength(1);
  });

  test('another field later → told as well', async () => {
    const { inbox, told } = makeTellingInbox();
    await inbox.process(payload(tracking('t1', oddOrder)), () => {});
    await inbox.process(payload(tracking('t1', { ...oddOrder, location: 5 })), () => {});
    expect(told.map(({ message }) => message)).toEqual([
      expect.stringContaining('`events[0].order`'),
      'Kept fields of item 0 of a webhook: Expected `events[0].location` to be a string, got a number',
    ]);
  });

  test('a body as it should be → nothing told', async () => {
    const { inbox, told } = makeTellingInbox();
    await inbox.process(payload(tracking('t1', 'e1')), () => {});
    expect(told).toEqual([]);
  });
});

test('onOther rejects → told to onError, without keys', async () => {
  const { inbox, told } = makeTellingInbox();
  await inbox.process(payload(proofOfDelivery('t1')), { onOther: () => Promise.reject(new Error('no log')) });
  expect(told).toEqual([{ operation: 'other', keys: [], message: 'no log' }]);
});

describe('no onError', () => {
  beforeEach(() => {
    vi.spyOn(console, 'error').mockImplementation(() => {});
  });
  afterEach(() => {
    vi.restoreAllMocks();
  });

  test('rejected items → one line on console.error that shows no value', async () => {
    await makeInbox({ onError: undefined }).process(
      payload({ tracker: 'a-name', events: ['a-place'] }),
      () => {},
    );
    expect(console.error).toHaveBeenCalledOnce();
    const [line, err] = vi.mocked(console.error).mock.calls[0] ?? [];
    expect(line).toContain(`[tracking-client] Webhook parse failed: ${err.message}`);
    expect(err).toMatchObject({ name: 'WebhookParseError' });
    expect(line).not.toMatch(/a-name|a-place/);
  });
});

test('onError that rejects later → the event is handled, and the process lives', async () => {
  const inbox = makeInbox({ onError: () => Promise.reject(new Error('no metrics')) });
  const report = await inbox.process(payload(tracking('t1', 'e1', 'e2')), failingOn('e1').handler);
  expect(report).toMatchObject({ outcome: 'failed', handled: 1 });
});
