import { expect, test, vi } from 'vitest';
import {
  createWebhookHandler,
  type EventContext,
  MemoryDedupeStore,
  type WebhookReport,
} from '../../../src/webhooks/index.ts';
import { deferred } from '../../support/deferred.ts';
import { post, SECRET } from '../make-handler.ts';
import { makeInbox, payload, TWO } from '../support.ts';

const COUNT = 1_000;
const EVENTS = Array.from({ length: COUNT }, (_, index) => ({ eventId: String(index) }));
/** One message with all events, and one message for each event of the same tracker. */
const BODIES = {
  'one message': { trackerId: 't1', events: EVENTS },
  'a message for each event': payload(...EVENTS.map((event) => ({ trackerId: 't1', events: [event] }))),
};

test.each(Object.entries(BODIES))(
  '%s, 1,000 events and a callback that never waits → timers fire in between',
  async (_title, body) => {
    let handled = 0;
    const seen: number[] = [];
    setTimeout(() => seen.push(handled), 0);
    const report = await makeInbox().process(body, () => {
      handled += 1;
    });
    expect(report).toMatchObject({ outcome: 'done', handled: COUNT });
    expect(seen).toHaveLength(1);
    expect(seen[0]).toBeLessThan(COUNT);
  },
);

test('1,000 messages for an onOther that never waits → timers fire in between', async () => {
  const metadata = { topic: 'tracking/new' };
  let called = 0;
  const seen: number[] = [];
  setTimeout(() => seen.push(called), 0);
  await makeInbox().process(payload(...EVENTS.map(() => ({ metadata }))), {
    onOther: () => {
      called += 1;
    },
  });
  expect([called, seen.length]).toEqual([COUNT, 1]);
  expect(seen[0]).toBeLessThan(COUNT);
});

test('a webhook with more events than can be handled before the deadline → 503 at the deadline, and the work goes on', async () => {
  const reported = deferred<WebhookReport>();
  let handled = 0;
  const webhooks = createWebhookHandler({
    secret: SECRET,
    store: new MemoryDedupeStore(),
    deadlineMs: 1,
    onEvent: () => {
      handled += 1;
    },
    onReport: reported.resolve,
  });
  const response = await webhooks(post(BODIES['one message']));
  expect(await response.json()).toEqual({ success: false, outcome: 'deadline' });
  expect(handled).toBeLessThan(COUNT);
  expect(await reported.promise).toMatchObject({ outcome: 'done', handled: COUNT });
});

test('a copy of the context → contains the signal, and the keys that were added', async () => {
  const controller = new AbortController();
  const seen: unknown[] = [];
  const onEvent = (_event: unknown, context: EventContext) => {
    const { signal, key } = { ...context };
    controller.abort(key);
    seen.push(signal.aborted, signal.reason === key);
  };
  await makeInbox().process(TWO, onEvent, { signal: controller.signal });
  expect(seen).toEqual([true, true]);
});

test('a signal that is read only after the callback timed out → aborted with the reason', async () => {
  const gate = deferred();
  const inbox = makeInbox({ callbackTimeoutMs: 1 });
  let late: unknown;
  const report = await inbox.process(
    { trackerId: 't1', events: [{ eventId: 'e1' }] },
    async (_event, context) => {
      await gate.promise;
      late = context.signal.reason;
    },
  );
  gate.resolve();
  await vi.waitFor(() => expect(late).toBe(report.failures[0]?.error));
  expect(report.outcome).toBe('failed');
});

test('twice as many events → twice as many events searched, not four times as many', async () => {
  // Every search of a list of events is a call of one of these methods.
  const count = async (events: readonly object[]) => {
    let reads = 0;
    const methods = ['some', 'filter', 'every', 'find'] as const;
    const spies = methods.map((method) => {
      const original: unknown = Reflect.get(Array.prototype, method);
      return vi.spyOn(Array.prototype, method).mockImplementation(function (this: unknown[], ...parameters) {
        reads += this.length;
        // Sound: `original` is the method itself.
        return Reflect.apply(original as () => never, this, parameters);
      });
    });
    await makeInbox().process({ trackerId: 't1', events }, () => {});
    for (const spy of spies) spy.mockRestore();
    return reads;
  };
  const few = await count(EVENTS.slice(0, 400));
  expect(await count(EVENTS.slice(0, 800))).toBeLessThan(few * 2.5);
});

test('callbacks that do not read their signal → no listener is added to the signal of the call', async () => {
  const { signal } = new AbortController();
  const addEventListener = vi.spyOn(signal, 'addEventListener');
  await makeInbox().process(TWO, async () => {}, { signal });
  expect(addEventListener).not.toHaveBeenCalled();
});
