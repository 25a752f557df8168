import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { makeInbox, payload, proofOfDelivery, tracking } from './support.ts';

describe('a signal that has aborted', () => {
  const signal = AbortSignal.abort();

  test.each([
    ['a message without events', payload(tracking('t1'))],
    ['a message that no callback wants', payload(proofOfDelivery('t1'))],
  ])('%s → onOther is not called, interrupted: 200 would say that somebody saw it', async (_title, body) => {
    const onOther = vi.fn();
    const report = await makeInbox().process(body, { onEvent: () => {}, onOther }, { signal });
    expect(onOther).not.toHaveBeenCalled();
    expect(report.outcome).toBe('interrupted');
  });

  test('no onOther → done, since nothing is left to do', async () => {
    const body = payload(tracking('t1'), proofOfDelivery('t2'));
    const report = await makeInbox().process(body, { onEvent: () => {} }, { signal });
    expect(report).toMatchObject({ outcome: 'done', others: 2 });
  });
});

test('onOther beyond callbackTimeoutMs → failed, told to onError', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const onError = vi.fn();
  const inbox = makeInbox({ callbackTimeoutMs: 1_000, onError });
  const report = inbox.process(payload(proofOfDelivery('t1')), { onOther: () => new Promise(() => {}) });
  await vi.advanceTimersByTimeAsync(1_000);
  expect(await report).toMatchObject({ outcome: 'failed', failures: [{ keys: [] }] });
  expect(onError).toHaveBeenCalledWith(expect.any(Error), { operation: 'other', keys: [] });
});

test('a signal that aborts during onOther → the next message is left to the redelivery', async () => {
  const shutdown = new AbortController();
  const onOther = vi.fn(() => shutdown.abort());
  const body = payload(tracking('t1'), tracking('t2'));
  const report = await makeInbox().process(body, { onOther }, { signal: shutdown.signal });
  expect(onOther).toHaveBeenCalledOnce();
  expect(report.outcome).toBe('interrupted');
});
