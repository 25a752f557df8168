import { expect, test } from 'vitest';
import { newToken, TokenPool } from '../../src/limiter/allowance.ts';

const MAX_UPLINK_MS = 500;

test('a token sent twice → only the first time counts', () => {
  const pool = new TokenPool(MAX_UPLINK_MS);
  const token = pool.grant(newToken(0));
  expect([pool.send(token, 0), pool.send(token, 0)]).toEqual([true, false]);
});

test('a token cancelled twice → only the first time counts', () => {
  const pool = new TokenPool(MAX_UPLINK_MS);
  const token = pool.grant(newToken(0));
  expect([pool.cancel(token), pool.cancel(token)]).toEqual([true, false]);
});

test('one granted, one sent, one answered and one cancelled → all but the last are out', () => {
  const pool = new TokenPool(MAX_UPLINK_MS);
  const tokens = [1, 2, 3, 4].map(() => pool.grant(newToken(0)));
  const [, sent, answered, cancelled] = tokens;
  for (const token of [sent, answered]) if (token) pool.send(token, 0);
  if (answered) pool.report(answered, 0);
  if (cancelled) pool.cancel(cancelled);
  expect(new Set(pool.all)).toEqual(new Set(tokens.slice(0, 3)));
});
