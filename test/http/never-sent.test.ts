import { afterEach, describe, expect, test, vi } from 'vitest';
import { wasNeverSent } from '../../src/http/send.ts';
import { makeClient, networkFailure, rejectionOf } from '../support/make-client.ts';

/** What Deno 2 rejects with; the sentence is its own. */
const denoFailure = (what: string) => new TypeError('fetch failed', { cause: new Error(what) });
const DENO_REFUSED =
  'error sending request for url (http://127.0.0.1:1/a(b)c): client error (Connect): tcp connect error: Connection refused (os error 111)';

afterEach(() => {
  vi.unstubAllGlobals();
});

describe('codes', () => {
  test.each([
    ['EHOSTUNREACH', 'connect'],
    ['ENETUNREACH', 'connect'],
    ['ETIMEDOUT', 'connect'],
    ['ECONNRESET', 'connect'],
    ['ENODATA', 'getaddrinfo'],
  ])('%s of %s, a call before the first byte → never sent', (code, syscall) => {
    expect(wasNeverSent(Object.assign(new Error(code), { code, syscall }))).toBe(true);
  });

  test.each([
    ['EHOSTUNREACH', 'write'],
    ['ETIMEDOUT', 'read'],
    ['ECONNRESET', 'read'],
    ['EPIPE', 'write'],
  ])('%s of %s → may have been sent', (code, syscall) => {
    expect(wasNeverSent(Object.assign(new Error(code), { code, syscall }))).toBe(false);
  });

  test('a refused connection around a reset, as of a wrapper that tried twice → may have been sent', () => {
    const reset = Object.assign(new Error('reset'), { code: 'ECONNRESET' });
    const outer = Object.assign(new Error('refused', { cause: reset }), { code: 'ECONNREFUSED' });
    expect(wasNeverSent(outer)).toBe(false);
  });

  test('a code that is a number, as of a DOMException → no proof', () => {
    expect(wasNeverSent(Object.assign(new Error('x'), { code: 20 }))).toBe(false);
  });

  test('a refused connection inside an error whose code is a number → never sent', () => {
    const failure = Object.assign(networkFailure('ECONNREFUSED'), { code: 20 });
    expect(wasNeverSent(failure)).toBe(true);
  });

  test.each([
    [5, true],
    [6, false],
  ])('a refused connection inside %d errors → never sent: %j', (depth, isProof) => {
    let failure: Error = Object.assign(new Error('refused'), { code: 'ECONNREFUSED' });
    for (let level = 0; level < depth; level += 1) failure = new Error('outer', { cause: failure });
    expect(wasNeverSent(failure)).toBe(isProof);
  });

  test('a cause that is its own cause → ends', () => {
    const error = new Error('round');
    error.cause = error;
    expect(wasNeverSent(error)).toBe(false);
  });
});

describe('words', () => {
  test.each([
    'gateway answered 502: upstream said "connection refused by courier"',
    'dns error',
    'failed to lookup address information',
    DENO_REFUSED,
  ])('%s → no proof', (message) => {
    expect(wasNeverSent(new Error(message))).toBe(false);
    expect(wasNeverSent(denoFailure(message))).toBe(false);
  });

  test('a paid call whose failure speaks of a refused connection → sent once', async () => {
    const failure = new Error('gateway answered 502: upstream said "connection refused by courier"');
    const { client, requests } = makeClient(failure);
    const call = client.tracking.search({ trackingNumber: 'LA680658838NL' });
    expect(await rejectionOf(call)).toMatchObject({ name: 'ConnectionError', neverSent: false });
    expect(requests).toHaveLength(1);
  });
});

describe('Deno, which has no codes', () => {
  test.each([
    ['a refused connection', DENO_REFUSED],
    [
      'an unknown host',
      'error sending request for url (http://nonexistent.invalid/): client error (Connect): dns error: failed to lookup address information',
    ],
  ])('%s → never sent', (_what, message) => {
    vi.stubGlobal('Deno', {});
    expect(wasNeverSent(denoFailure(message))).toBe(true);
  });

  test.each([
    [
      'a reset',
      'error sending request from 127.0.0.1:2 for http://127.0.0.1:1/ (127.0.0.1:1): client error (SendRequest): connection closed before message completed',
    ],
    ['its sentence inside another', `upstream said: ${DENO_REFUSED}`],
    ['a refused connection in other words', 'connection refused'],
  ])('%s → may have been sent', (_what, message) => {
    vi.stubGlobal('Deno', {});
    expect(wasNeverSent(denoFailure(message))).toBe(false);
  });

  test('a refused connection, one error deeper → never sent', () => {
    vi.stubGlobal('Deno', {});
    expect(wasNeverSent(new Error('outer', { cause: denoFailure(DENO_REFUSED) }))).toBe(true);
  });

  test('what is no error → may have been sent', () => {
    vi.stubGlobal('Deno', {});
    expect(wasNeverSent(DENO_REFUSED)).toBe(false);
  });

  test('a code after all → the code decides', () => {
    vi.stubGlobal('Deno', {});
    expect(wasNeverSent(networkFailure('ECONNRESET'))).toBe(false);
    expect(wasNeverSent(networkFailure('ECONNREFUSED'))).toBe(true);
  });
});
