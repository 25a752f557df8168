import { expect, test } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import { E1, makeInbox } from './support.ts';

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
  ['no callback', {}, {}, /at least one callback/],
  ['onEvent and onEvents', { onEvent() {}, onEvents() {} }, {}, /not both/],
  ['a wait of NaN', () => {}, { busyTimeoutMs: Number.NaN }, /`busyTimeoutMs`/],
  ['a misspelt option', () => {}, { busytimeoutMs: 5 }, /busyTimeoutMs/],
  ['text as options', () => {}, 'soon', /`options`/],
])('process with %s → ConfigurationError', async (_title, callbacks, options, message) => {
  // The wrong types on purpose: JavaScript callers have no compiler.
  const processing = makeInbox().process(E1, callbacks as never, options as never);
  await expect(processing).rejects.toThrow(ConfigurationError);
  await expect(processing).rejects.toThrow(message);
});
