import { describe, expect, test, vi } from 'vitest';
import { ConfigurationError } from '../../../src/errors.ts';
import { buildEvent, buildTracker, buildTracking } from '../../../src/testing/index.ts';
import { MemoryDedupeStore, type WebhookHandlerOptions, WebhookInbox } from '../../../src/webhooks/index.ts';
import { makeHandler, post } from '../make-handler.ts';
import { E1, makeInbox, payload, proofOfDelivery, tracking } from '../support.ts';

const SECRETS: Readonly<Record<string, string>> = { '/hooks/acme': 'whsec-a', '/hooks/bolt': 'whsec-b' };

/** A handler for two accounts, which are told apart by the path. */
function makeAccountHandler(options: Partial<WebhookHandlerOptions> = {}) {
  const handler = makeHandler({
    secret: async ({ url }) => {
      const { pathname } = new URL(url);
      return { secret: SECRETS[pathname], account: pathname.slice('/hooks/'.length) };
    },
    onRefused: () => {},
    ...options,
  });
  return async (account: string, secret: string, body: object = E1) => {
    const request = post(body, { authorization: `Bearer ${secret}` });
    return (await handler(new Request(`https://app.example.test/hooks/${account}`, request))).status;
  };
}

describe('a handler for several accounts', () => {
  test('the same webhook for two accounts, twice each → handled once for each account', async () => {
    const handled: unknown[] = [];
    const onReport = vi.fn();
    const send = makeAccountHandler({
      onEvent: (_event, { account, key }) => void handled.push([account, key]),
      onReport,
    });
    const statuses = [];
    for (const [account, secret] of [
      ['acme', 'whsec-a'],
      ['bolt', 'whsec-b'],
      ['acme', 'whsec-a'],
      ['bolt', 'whsec-b'],
    ] as const)
      statuses.push(await send(account, secret));
    expect(statuses).toEqual([200, 200, 200, 200]);
    expect(handled).toEqual([
      ['acme', 'tracking/events:%account=acme:t1:e1'],
      ['bolt', 'tracking/events:%account=bolt:t1:e1'],
    ]);
    expect(onReport.mock.calls).toMatchObject([
      [{ account: 'acme', handled: 1 }],
      [{ account: 'bolt', handled: 1 }],
      [{ account: 'acme', duplicates: 1 }],
      [{ account: 'bolt', duplicates: 1 }],
    ]);
  });

  test.each([
    ['the secret of another account', 'acme', 'whsec-b'],
    ['an unknown account', 'unknown', 'whsec-a'],
  ])('%s → 401, nothing handled', async (_title, account, secret) => {
    const onEvent = vi.fn();
    const send = makeAccountHandler({ onEvent });
    expect([await send(account, secret), onEvent.mock.calls]).toEqual([401, []]);
  });
});

describe('the option account', () => {
  test.each([
    [{ account: 'acme' }, { account: 'acme' }],
    [{}, { account: undefined }],
  ])('%j → every callback and the report get it', async (options, expected) => {
    const contexts: unknown[] = [];
    const note = (_first: unknown, context?: { readonly account?: string | undefined }) =>
      void contexts.push({ account: context?.account });
    const body = payload(tracking('t1', 'e1'), proofOfDelivery('t1'), {
      metadata: { topic: 'tracking/new' },
    });
    const callbacks = { onEvents: note, onProofOfDelivery: note, onOther: note };
    const report = await makeInbox().process(body, callbacks, options);
    await makeInbox().process(E1, { onEvent: note }, options);
    const inbox = makeInbox({ maxAttempts: 1, onDeadLetter: note });
    await inbox.process(E1, { onEvent: () => Promise.reject(new Error('no database')) }, options);
    expect(contexts).toEqual(Array(5).fill(expected));
    expect(report.account).toBe(expected.account);
  });

  test('results of an account, then its webhook, then the same results of another account → one call for each account', async () => {
    const onEvent = vi.fn();
    const inbox = new WebhookInbox({ store: new MemoryDedupeStore() });
    const tracker = buildTracker({ trackerId: 't1' });
    const results = buildTracking({ tracker, events: [buildEvent({ eventId: 'e1' })] });
    await inbox.processResults(results, onEvent, { account: 'acme' });
    await inbox.process(E1, onEvent, { account: 'acme' });
    await inbox.processResults(results, onEvent, { account: 'bolt' });
    await inbox.process(E1, onEvent);
    expect(onEvent.mock.calls.map(([, { account }]) => account)).toEqual(['acme', 'bolt', undefined]);
  });

  test('a failing callback → its log line says that the key is of an event', async () => {
    const error = vi.fn();
    const inbox = makeInbox({ onError: undefined, logger: { debug() {}, info() {}, warn() {}, error } });
    await inbox.process(E1, () => Promise.reject(new Error('no database')), { account: 'acme' });
    expect(error).toHaveBeenCalledWith(
      expect.stringContaining('for the event with the key "tracking/events:%account=acme:t1:e1"'),
      expect.anything(),
    );
  });

  test.each([
    ['an empty text', ''],
    ['a number', 5],
    ['null', null],
  ])('%s → ConfigurationError', async (_title, account) => {
    // The wrong type on purpose: JavaScript callers have no compiler.
    const processing = makeInbox().process(E1, () => {}, { account: account as string });
    await expect(processing).rejects.toThrow(ConfigurationError);
    await expect(processing).rejects.toThrow('`account` to be a text that is not empty');
  });
});
