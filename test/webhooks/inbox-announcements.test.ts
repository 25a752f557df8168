import { describe, expect, test, vi } from 'vitest';
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
