import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { TrackingClient } from '../../src/client.ts';
import { ApiError, ConnectionError, ResponseValidationError, TimeoutError } from '../../src/errors.ts';
import type { ApiPromise } from '../../src/http/api-promise.ts';
import * as samples from '../contract/support/samples.ts';
import { EVERY_CALL } from '../support/calls.ts';
import type { Made } from '../support/made.ts';
import { API_KEY } from '../support/make-client.ts';
import { BASE_PATH } from '../support/scripted-server.ts';
import { brokenBody } from './bodies.ts';
import { must, printed, property } from './harness.ts';
import { type RawResponse, startRawServer } from './raw-server.ts';

const TIMEOUT_MS = 150;
/** The deadline of a call, and the delay that a busy machine may add. */
const TOTAL_TIMEOUT_MS = 1_500;
const SLACK_MS = 10_000;

const CALLS = [
  ...EVERY_CALL,
  [
    'request',
    {
      call: (client: TrackingClient) => client.request({ method: 'GET', path: '/any' }),
      response: { data: [1, 'two'] },
    },
  ] as const,
];

const status = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(200, 201) },
  { weight: 3, arbitrary: fc.constantFrom(202, 204, 205, 207, 301, 304, 400, 401, 403, 404, 405, 409, 422) },
  { weight: 2, arbitrary: fc.constantFrom(408, 429, 500, 502, 503, 504) },
  { weight: 1, arbitrary: fc.integer({ min: 0, max: 999 }) },
);
const contentType = fc.oneof(
  { weight: 5, arbitrary: fc.constant('application/json') },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      ...['application/json; charset=utf-16', 'application/problem+json', 'text/html', 'text/plain'],
      ...['json', ';;;', `text/${API_KEY}`, ''],
    ),
  },
);
const header = fc.oneof(
  fc.tuple(
    fc.constantFrom(
      ...['x-request-id', 'set-cookie', 'retry-after', 'content-disposition'],
      ...['location', 'content-type', 'x-odd'],
    ),
    fc.constantFrom(
      ...['', '0', '0.01', 'attachment', `a=${API_KEY}`, API_KEY],
      ...['\x80\xff', 'a\tb', 'a, b', 'é'.repeat(500)],
    ),
  ),
  // Names and values that are invalid in HTTP.
  fc.tuple(
    fc.constantFrom('bad name', '', 'a:b', 'content-length', 'transfer-encoding'),
    fc.string({ maxLength: 8 }),
  ),
);

const response = fc.record({
  status,
  reason: fc.constantFrom('OK', '', `for ${API_KEY}`, '\xc3\xa9\x80'),
  contentType,
  headers: fc.array(header, { maxLength: 2 }),
  framing: fc.constantFrom('length', 'length', 'length', 'chunked', 'close', 'gzip'),
  /** How much of the end of a response is cut off; most responses arrive whole. */
  loss: fc.oneof(
    { weight: 4, arbitrary: fc.constant('none') },
    { weight: 5, arbitrary: fc.constantFrom('cut', 'reset', 'stall', 'broken gzip', 'more than announced') },
  ),
});
type MadeResponse = Made<typeof response>;

/** Builds the bytes of a response. */
function buildResponse({ loss, framing, ...made }: MadeResponse, wholeBody: Buffer): RawResponse {
  // `fetch` never reads a body where HTTP allows none, and keeps the connection open for ever.
  const hasNoBody = [204, 205, 304].includes(made.status);
  const body = hasNoBody ? Buffer.alloc(0) : wholeBody;
  const isCut = !hasNoBody && (loss === 'cut' || loss === 'reset' || loss === 'stall');
  let sent = framing === 'gzip' ? gzipSync(body) : body;
  if (framing === 'gzip' && loss === 'broken gzip') sent = sent.subarray(0, sent.length / 2);
  const announced = loss === 'more than announced' ? Math.floor(sent.length / 2) : sent.length;
  const lines = [
    `HTTP/1.1 ${made.status} ${made.reason}`,
    'connection: close',
    ...(made.contentType === '' ? [] : [`content-type: ${made.contentType}`]),
    ...(framing === 'gzip' ? ['content-encoding: gzip'] : []),
    ...(framing === 'length' || framing === 'gzip' ? [`content-length: ${announced}`] : []),
    ...(framing === 'chunked' ? ['transfer-encoding: chunked'] : []),
    ...made.headers.map(([name, value]) => `${name}: ${value}`),
  ];
  const head = Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
  const size = Buffer.from(`${sent.length.toString(16)}\r\n`);
  const framed =
    framing === 'chunked' && sent.length > 0
      ? Buffer.concat([size, sent, Buffer.from('\r\n0\r\n\r\n')])
      : Buffer.concat([sent, Buffer.from(framing === 'chunked' ? '0\r\n\r\n' : '')]);
  const bytes = Buffer.concat([head, framed]);
  const end = isCut ? head.length + Math.floor(framed.length / 2) : bytes.length;
  return { bytes: bytes.subarray(0, end), ending: isCut && loss !== 'cut' ? loss : 'end' };
}

const text = fc.constantFrom('tracker_conflict', 'auth_x', 'no', API_KEY, `the key ${API_KEY} is not known`);
/** An error of a service that echoes parts of the request. */
const failure = fc.record({
  errors: fc.array(fc.record({ code: text, message: text, request: fc.record({ headers: text }) }), {
    maxLength: 2,
  }),
  data: fc.constant(null),
});

/** Responses with every documented field. */
const DOCUMENTED = [samples.BULK_PARTIAL, samples.HISTORY, { data: { trackings: [samples.TRACKING] } }];
const TEXTS = [
  '\uFEFF{"data":{"couriers":[]}}',
  '{"data":{"trackers":[]}}{"data":{"trackers":[]}}',
  'upstream connect error or disconnect/reset before headers',
];

const input = fc.nat(CALLS.length - 1).chain((index) => {
  const good = CALLS[index]?.[1].response;
  return fc.record({
    index: fc.constant(index),
    response,
    // Some responses are valid, so that a client that rejects everything fails the run.
    body: fc.oneof(
      { weight: 1, arbitrary: fc.constant(undefined) },
      { weight: 8, arbitrary: brokenBody(fc.oneof(fc.constantFrom(good, ...DOCUMENTED), failure), TEXTS) },
    ),
    mode: fc.constantFrom('keep', 'keep', 'throw'),
  } as const);
});

/** The errors of a call that are caused by a response. */
const TYPED = [ApiError, ConnectionError, TimeoutError, ResponseValidationError];

/** Any bytes as a response make every method resolve, or reject with a typed error that hides the key, in time. */
export const responses = property('responses', 200, input, async () => {
  const server = await startRawServer();
  const seen: unknown[] = [];
  const note = (...what: unknown[]) => void seen.push(what);
  const client = new TrackingClient({
    baseUrl: server.origin + BASE_PATH,
    apiKey: API_KEY,
    timeoutMs: TIMEOUT_MS,
    totalTimeoutMs: TOTAL_TIMEOUT_MS,
    retry: false,
    // The limiter is off, because a pause after one response would delay the next run.
    rateLimit: false,
    logger: { debug: note, info: note, warn: note, error: note },
    logLevel: 'debug',
    hooks: { onRequest: note, onResponse: note, onRetry: note, onRateLimit: note, onMismatch: note },
  });
  const modes = { keep: client, throw: client.withOptions({ invalidResponse: 'throw' }) };

  return {
    async check({ index, response: made, body: broken, mode }) {
      const [, sample] = CALLS[index] ?? [];
      if (sample === undefined) return;
      seen.length = 0;
      const body = broken ?? Buffer.from(JSON.stringify(sample.response));
      server.response = buildResponse(made, body);
      const startedAt = performance.now();
      // Sound: every method that sends one request returns an `ApiPromise`.
      const call = sample.call(modes[mode]) as ApiPromise<unknown>;
      const outcome = await call.withResponse().then(
        (value) => ({ value, error: undefined }),
        (error: unknown) => ({ value: undefined, error }),
      );
      const tookMs = performance.now() - startedAt;
      must(tookMs < TOTAL_TIMEOUT_MS + SLACK_MS, () => `took ${tookMs} ms`);
      const { value, error } = outcome;
      must(
        !printed([error, seen, value?.mismatched]).includes(API_KEY),
        () => `shows the key: ${printed([error, seen])}`,
      );
      if (value === undefined) {
        must(
          TYPED.some((type) => error instanceof type),
          () => `no typed error: ${printed(error)}`,
        );
        const isPlain =
          broken === undefined &&
          made.loss === 'none' &&
          [200, 201].includes(made.status) &&
          made.headers.length === 0;
        must(!isPlain || made.contentType !== 'application/json', () => `a good response: ${printed(error)}`);
      }
    },
    stop: async () => server.stop(),
  };
});
