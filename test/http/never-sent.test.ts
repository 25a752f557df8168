import { afterEach, expect, test, vi } from 'vitest';
import { makeClient, networkFailure, rejectionOf } from '../support/make-client.ts';

const coded = (code: unknown, fields: object = {}) => Object.assign(new Error('socket'), { code, ...fields });
/** Wraps an error in others, `depth` times. */
const wrap = (error: Error, depth: number): Error =>
  depth === 0 ? error : new Error('outer', { cause: wrap(error, depth - 1) });
const round = new Error('round');
round.cause = round;

/** What Deno 2 rejects with; the sentence is its own. */
const denoFailure = (what: string) => new TypeError('fetch failed', { cause: new Error(what) });
const DENO_REFUSED =
  'error sending request for url (http://127.0.0.1:1/a(b)c): client error (Connect): tcp connect error: Connection refused (os error 111)';
const DENO_UNKNOWN_HOST =
  'error sending request for url (http://nonexistent.invalid/): client error (Connect): dns error: failed to lookup address information';
const DENO_RESET =
  'error sending request from 127.0.0.1:2 for http://127.0.0.1:1/ (127.0.0.1:1): client error (SendRequest): connection closed before message completed';

afterEach(() => {
  vi.unstubAllGlobals();
});

/** Whether a failure of `fetch` proves that nothing was sent. */
async function wasNeverSent(failure: unknown): Promise<boolean> {
  const { client } = makeClient(() => Promise.reject(failure), { retry: false });
  return Object(await rejectionOf(client.couriers.list())).neverSent;
}

test.each<[what: string, failure: unknown, isProof: boolean]>([
  ...['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT', 'ConnectionRefused']
    .concat('FailedToOpenSocket')
    .map((code): [string, unknown, boolean] => [code, networkFailure(code), true]),
  ['EHOSTUNREACH of connect', coded('EHOSTUNREACH', { syscall: 'connect' }), true],
  ['ECONNRESET of connect', coded('ECONNRESET', { syscall: 'connect' }), true],
  ['ENODATA of getaddrinfo', coded('ENODATA', { syscall: 'getaddrinfo' }), true],
  ['EHOSTUNREACH of write', coded('EHOSTUNREACH', { syscall: 'write' }), false],
  ['ECONNRESET of read', coded('ECONNRESET', { syscall: 'read' }), false],
  ['a refused connection around a reset', coded('ECONNREFUSED', { cause: coded('ECONNRESET') }), false],
  ['a code that is a number, as of a DOMException', coded(20), false],
  ['a refused connection in it', Object.assign(networkFailure('ECONNREFUSED'), { code: 20 }), true],
  ['a refused connection inside 5 errors', wrap(coded('ECONNREFUSED'), 5), true],
  ['a refused connection inside 6 errors', wrap(coded('ECONNREFUSED'), 6), false],
  ['a cause that is its own cause', round, false],
  ['words of a gateway', new Error('answered 502: upstream said "connection refused"'), false],
  ['the words of Deno, elsewhere', denoFailure(DENO_REFUSED), false],
])('%s → never sent: %3$j', async (_what, failure, isProof) => {
  expect(await wasNeverSent(failure)).toBe(isProof);
});

test.each<[what: string, failure: unknown, isProof: boolean]>([
  ['a refused connection', denoFailure(DENO_REFUSED), true],
  ['an unknown host', denoFailure(DENO_UNKNOWN_HOST), true],
  ['a refused connection, one error deeper', wrap(denoFailure(DENO_REFUSED), 1), true],
  ['a reset', denoFailure(DENO_RESET), false],
  ['its sentence inside another', denoFailure(`upstream said: ${DENO_REFUSED}`), false],
  ['other words', denoFailure('connection refused'), false],
  ['what is no error', DENO_REFUSED, false],
  ['a reset with a code', networkFailure('ECONNRESET'), false],
  ['a refused connection with a code', networkFailure('ECONNREFUSED'), true],
])('Deno, which has no codes: %s → never sent: %3$j', async (_what, failure, isProof) => {
  vi.stubGlobal('Deno', {});
  expect(await wasNeverSent(failure)).toBe(isProof);
});

test('a paid call whose failure speaks of a refused connection → sent once', async () => {
  const { client, requests } = makeClient(new Error('upstream said "connection refused by courier"'));
  await rejectionOf(client.tracking.search({ trackingNumber: 'LA680658838NL' }));
  expect(requests).toHaveLength(1);
});
