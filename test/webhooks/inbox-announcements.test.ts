import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { makeInbox, payload, proofOfDelivery, tracking } from './support.ts';

describe('a signal that has aborted', () => {
  const signal = AbortSignal.abort();

  test('a delivery without events → onSnapshot is not called, interrupted: 200 would say that somebody saw it', async () => {
    const onSnapshot = vi.fn();
    const report = await makeInbox().process(payload(tracking('t1')), { onSnapshot }, { signal });
    expect(onSnapshot).not.toHaveBeenCalled();
    expect(report).toMatchObject({ outcome: 'interrupted', snapshots: 0 });
  });

  test('a delivery that nothing wants → onUnhandled is not called, interrupted', async () => {
    const onUnhandled = vi.fn();
    const report = await makeInbox().process(payload(proofOfDelivery('t1')), { onUnhandled }, { signal });
    expect(onUnhandled).not.toHaveBeenCalled();
    expect(report.outcome).toBe('interrupted');
  });

  test('nobody to tell of snapshots or of what nothing wants → done, since nothing is left to do', async () => {
    const body = payload(tracking('t1'), proofOfDelivery('t2'));
    const report = await makeInbox().process(body, { handler: () => {} }, { signal });
    expect(report).toMatchObject({ outcome: 'done', unhandled: 1 });
  });

  test('nobody to tell of the kind that came → done, since nothing is left to do', async () => {
    const inbox = makeInbox();
    const snapshot = await inbox.process(
      payload(tracking('t1')),
      { handler: vi.fn(), onUnhandled: vi.fn() },
      { signal },
    );
    const unhandled = await inbox.process(
      payload(proofOfDelivery('t1')),
      { onSnapshot: vi.fn() },
      { signal },
    );
    expect([unhandled.outcome, snapshot.outcome]).toEqual(['done', 'done']);
  });
});

test.each([
  ['onSnapshot', 'snapshot', payload(tracking('t1'))],
  ['onUnhandled', 'unhandled', payload(proofOfDelivery('t1'))],
] as const)(
  '%s beyond handlerTimeoutMs → failed, told to onError as %s',
  async (callback, operation, body) => {
    vi.useFakeTimers();
    onTestFinished(() => {
      vi.useRealTimers();
    });
    const onError = vi.fn();
    const inbox = makeInbox({ handlerTimeoutMs: 1_000, onError });
    const report = inbox.process(body, { [callback]: () => new Promise(() => {}) });
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await report).toMatchObject({ outcome: 'failed', failures: [{ keys: [] }] });
    expect(onError).toHaveBeenCalledWith(expect.any(Error), { operation, keys: [] });
  },
);

test('a delivery without events, and no onSnapshot → no snapshot is counted, for nobody was told of it', async () => {
  const report = await makeInbox().process(payload(tracking('t1')), {
    handler: () => {},
    onUnhandled: () => {},
  });
  expect(report).toMatchObject({ outcome: 'done', snapshots: 0 });
});

test('a signal that aborts during onSnapshot → the next one is not called', async () => {
  const shutdown = new AbortController();
  const seen: unknown[] = [];
  const report = await makeInbox().process(
    payload(tracking('t1'), tracking('t2')),
    {
      onSnapshot: ({ tracker }) => {
        seen.push(tracker.trackerId);
        shutdown.abort();
      },
    },
    { signal: shutdown.signal },
  );
  expect(seen).toEqual(['t1']);
  expect(report).toMatchObject({ outcome: 'interrupted', snapshots: 1 });
});
