import { describe, expect, test, vi } from 'vitest';
import type { EventsMessage, WebhookMessage } from '../../src/webhooks/index.ts';
import { WebhookParseError } from '../../src/webhooks/index.ts';
import { makeInbox, payload, proofOfDelivery, tracking } from './support.ts';

/** A handler that writes down what it was called with. */
function recorder() {
  const handled: string[] = [];
  return {
    handled,
    handler: (event: { eventId?: unknown }, context: { message: EventsMessage }) => {
      handled.push(`${context.message.tracker.trackerId}/${String(event.eventId)}`);
    },
  };
}

describe('handling once', () => {
  test('new events → each handled once, outcome done', async () => {
    const { handled, handler } = recorder();
    const report = await makeInbox().process(payload(tracking('t1', 'e1', 'e2')), handler);
    expect(handled).toEqual(['t1/e1', 't1/e2']);
    expect(report).toMatchObject({
      outcome: 'done',
      handled: 2,
      duplicates: 0,
      failures: [],
      busy: [],
      retryAfterMs: undefined,
    });
  });

  test('the same payload again → nothing handled, outcome done', async () => {
    const { handled, handler } = recorder();
    const inbox = makeInbox();
    await inbox.process(payload(tracking('t1', 'e1')), handler);
    const report = await inbox.process(payload(tracking('t1', 'e1')), handler);
    expect(handled).toEqual(['t1/e1']);
    expect(report).toMatchObject({ outcome: 'done', handled: 0, duplicates: 1 });
  });

  test('new and seen events mixed → only the new ones handled', async () => {
    const { handled, handler } = recorder();
    const inbox = makeInbox();
    await inbox.process(payload(tracking('t1', 'e1')), handler);
    const report = await inbox.process(payload(tracking('t1', 'e1', 'e2'), tracking('t2', 'e3')), handler);
    expect(handled).toEqual(['t1/e1', 't1/e2', 't2/e3']);
    expect(report).toMatchObject({ outcome: 'done', handled: 2, duplicates: 1 });
  });

  test('two trackers that share an event id → both handled', async () => {
    const { handled, handler } = recorder();
    await makeInbox().process(payload(tracking('t1', 'e1'), tracking('t2', 'e1')), handler);
    expect(handled).toEqual(['t1/e1', 't2/e1']);
  });

  test('an event id twice in one payload → the first one handled', async () => {
    const seen: unknown[] = [];
    const body = payload(
      tracking('t1', { eventId: 'e1', status: 'first' }, { eventId: 'e1', status: 'second' }),
      tracking('t1', { eventId: 'e1', status: 'third' }),
    );
    const report = await makeInbox().process(body, (event) => seen.push(event.status));
    expect(seen).toEqual(['first']);
    expect(report).toMatchObject({ handled: 1, duplicates: 2 });
  });

  test('an event without id, delivered twice → handled once', async () => {
    const { handled, handler } = recorder();
    const inbox = makeInbox();
    await inbox.process(payload(tracking('t1', { status: 'Arrived' })), handler);
    await inbox.process(payload(tracking('t1', { status: 'Arrived' })), handler);
    expect(handled).toHaveLength(1);
  });

  test('events in any order → handled oldest first', async () => {
    const { handled, handler } = recorder();
    const body = payload(
      tracking(
        't1',
        { eventId: 'late', occurrenceDatetime: '2021-03-05T10:00:00Z' },
        { eventId: 'early', occurrenceDatetime: '2021-03-05T10:00:00+02:00' },
      ),
    );
    await makeInbox().process(body, handler);
    expect(handled).toEqual(['t1/early', 't1/late']);
  });

  test('a tracker in two items, newer one first → its events handled oldest first', async () => {
    const { handled, handler } = recorder();
    const body = payload(
      tracking('t1', { eventId: 'late', occurrenceDatetime: '2021-03-05T10:00:00Z' }),
      tracking('t1', { eventId: 'early', occurrenceDatetime: '2021-03-04T10:00:00Z' }),
    );
    await makeInbox().process(body, handler);
    expect(handled).toEqual(['t1/early', 't1/late']);
  });

  test('two trackers in any order → handled in one order, so that two webhooks do not lock each other out', async () => {
    const { handled, handler } = recorder();
    await makeInbox().process(payload(tracking('t2', 'e1'), tracking('t1', 'e1')), handler);
    expect(handled).toEqual(['t1/e1', 't2/e1']);
  });

  test('a body that is text → parsed first', async () => {
    const { handled, handler } = recorder();
    await makeInbox().process(JSON.stringify(payload(tracking('t1', 'e1'))), handler);
    expect(handled).toEqual(['t1/e1']);
  });

  test('a body that is not JSON → WebhookParseError', async () => {
    await expect(makeInbox().process('{', () => {})).rejects.toThrow(WebhookParseError);
  });

  test('a broken item beside a good one → the good one handled, outcome rejected', async () => {
    const { handled, handler } = recorder();
    const report = await makeInbox().process(payload({}, tracking('t1', 'e1')), handler);
    expect(handled).toEqual(['t1/e1']);
    expect(report).toMatchObject({ outcome: 'rejected', handled: 1, rejected: [{ index: 0 }] });
  });

  test('150,000 events in one message → all handled', { timeout: 30_000 }, async () => {
    const events = Array.from({ length: 150_000 }, (_, index) => ({ eventId: `e${index}` }));
    const report = await makeInbox().process({ trackerId: 't1', events }, { onEvents: () => {} });
    expect(report).toMatchObject({ outcome: 'done', handled: 150_000 });
  });
});

describe('onEvent', () => {
  test('called → told the message, the attempt, the key and a live signal', async () => {
    let context: Record<string, unknown> = {};
    await makeInbox().process(payload(tracking('t1', 'e1')), (_event, given) => {
      context = { ...given };
    });
    expect(context).toMatchObject({
      attempt: 1,
      key: 'tracking/events:t1:e1',
      message: { kind: 'events', tracker: { trackerId: 't1' } },
    });
    expect(context['signal']).toMatchObject({ aborted: false });
  });
});

describe('onEvents', () => {
  test('new and seen events → called once with the new ones, oldest first', async () => {
    const inbox = makeInbox();
    const messages: EventsMessage[] = [];
    const callbacks = { onEvents: (message: EventsMessage) => messages.push(message) };
    await inbox.process(payload(tracking('t1', 'seen')), callbacks);
    const late = { eventId: 'late', occurrenceDatetime: '2021-03-05' };
    const early = { eventId: 'early', occurrenceDatetime: '2021-03-04' };
    const report = await inbox.process(payload(tracking('t1', late, 'seen', early)), callbacks);
    expect(messages).toHaveLength(2);
    expect(messages[1]).toMatchObject({ tracker: { trackerId: 't1' }, events: [early, late] });
    expect(report).toMatchObject({ handled: 2, duplicates: 1 });
  });

  test('called → told the keys of its events', async () => {
    let keys: readonly string[] = [];
    await makeInbox().process(payload(tracking('t1', 'e1', 'e2')), {
      onEvents: (_message, context) => {
        keys = context.keys;
      },
    });
    expect(keys).toEqual(['tracking/events:t1:e1', 'tracking/events:t1:e2']);
  });

  test('only seen events → not called', async () => {
    let calls = 0;
    const inbox = makeInbox();
    for (let round = 0; round < 2; round += 1) {
      await inbox.process(payload(tracking('t1', 'e1')), { onEvents: () => (calls += 1) });
    }
    expect(calls).toBe(1);
  });
});

describe('onProofOfDelivery', () => {
  test('delivered twice → called once', async () => {
    const inbox = makeInbox();
    const seen: unknown[] = [];
    const callbacks = { onProofOfDelivery: (pod: { data: unknown }) => seen.push(pod.data) };
    await inbox.process(payload(proofOfDelivery('t1')), callbacks);
    const report = await inbox.process(payload(proofOfDelivery('t1')), callbacks);
    expect(seen).toMatchObject([{ status: 'found' }]);
    expect(report).toMatchObject({ outcome: 'done', handled: 0, duplicates: 1 });
  });

  test('called → told the key', async () => {
    let context: Record<string, unknown> = {};
    await makeInbox().process(payload(proofOfDelivery('t1')), {
      onProofOfDelivery: (_proof, given) => {
        context = { ...given };
      },
    });
    expect(context).toMatchObject({ attempt: 1, key: expect.stringMatching(/^t1:sha256-/) });
  });

  test.each([
    ['the same proof in another message, as a resend has it → not called again', 'm2', 'found', 1],
    ['another proof in the same message → called again', 'm1', 'unavailable', 2],
  ])('%s', async (_title, messageId, status, calls) => {
    const onProofOfDelivery = vi.fn();
    const other = proofOfDelivery('t1', messageId);
    const inbox = makeInbox();
    for (const item of [proofOfDelivery('t1', 'm1'), { ...other, data: { ...other.data, status } }]) {
      await inbox.process(payload(item), { onProofOfDelivery });
    }
    expect(onProofOfDelivery).toHaveBeenCalledTimes(calls);
  });
});

describe('onOther', () => {
  test('unknown topic → called, outcome done', async () => {
    const others: WebhookMessage[] = [];
    const report = await makeInbox().process(payload({ metadata: { topic: 'tracking/weather' } }), {
      onOther: (message) => others.push(message),
    });
    expect(others).toMatchObject([{ kind: 'other', metadata: { topic: 'tracking/weather' } }]);
    expect(report).toMatchObject({ outcome: 'done', others: 1 });
  });

  test('events without handler → called, and not marked as handled', async () => {
    const inbox = makeInbox();
    const others: WebhookMessage[] = [];
    await inbox.process(payload(tracking('t1', 'e1')), {
      onOther: (message) => others.push(message),
    });
    expect(others).toMatchObject([{ kind: 'events' }]);
    const { handled, handler } = recorder();
    await inbox.process(payload(tracking('t1', 'e1')), handler);
    expect(handled).toEqual(['t1/e1']);
  });

  test.each([
    ['onEvent', { onEvent: () => {} }],
    ['onEvents', { onEvents: () => {} }],
  ])('a message without events, beside %s → called with it', async (_title, callbacks) => {
    const onOther = vi.fn();
    const report = await makeInbox().process(payload(tracking('t1')), { ...callbacks, onOther });
    expect(onOther).toHaveBeenCalledExactlyOnceWith(
      expect.objectContaining({
        kind: 'events',
        events: [],
        tracker: expect.objectContaining({ trackerId: 't1' }),
      }),
    );
    expect(report).toMatchObject({ outcome: 'done', handled: 0, others: 1 });
  });

  test('proof of delivery without callback → called', async () => {
    let calls = 0;
    await makeInbox().process(payload(proofOfDelivery('t1')), {
      onEvent: () => {},
      onOther: () => (calls += 1),
    });
    expect(calls).toBe(1);
  });

  test('not given → counted, outcome done', async () => {
    const report = await makeInbox().process(payload(proofOfDelivery('t1')), () => {});
    expect(report).toMatchObject({ outcome: 'done', others: 1 });
  });

  test('throws → outcome failed', async () => {
    const report = await makeInbox().process(payload(proofOfDelivery('t1')), {
      onOther: () => {
        throw new Error('no log');
      },
    });
    expect(report.outcome).toBe('failed');
  });
});
