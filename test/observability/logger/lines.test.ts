// Reads the lines of failed calls and callbacks from the output of each logger that programs use.
import { Console } from 'node:console';
import { Writable } from 'node:stream';
import { ConsoleLogger, Logger as NestLogger } from '@nestjs/common';
import bunyan from 'bunyan';
import pino from 'pino';
import { describe, expect, test, vi } from 'vitest';
import winston from 'winston';
import type { LogFields, Logger } from '../../../src/observability/logger.ts';
import type { TrackingClientOptions } from '../../../src/options.ts';
import { makeClient, type Step } from '../../support/make-client.ts';
import { settleInVirtualTime } from '../../support/virtual-time.ts';
import { makeHandler, post } from '../../webhooks/make-handler.ts';
import { payload, tracking } from '../../webhooks/support.ts';

const TITLE = 'GET https://api.example.test/public/v1/couriers';
const COURIERS = { body: { data: [] }, headers: { 'x-request-id': 'req-2' } };
const FAILING = { status: 503, headers: { 'retry-after': '2.5', 'x-request-id': 'req-1' } };
const RETRY_LINE = `[tracking-client] ${TITLE} responded with 503 (request id req-1); the client retries after at least 3 s (attempt 2)`;
const LAST_LINE = `[tracking-client] ${TITLE} responded with 503 (request id req-1); the client gave up after attempt 2`;
const CALL = {
  callId: expect.any(String),
  endpoint: 'couriers.list',
  method: 'GET',
  path: '/couriers',
  durationMs: expect.any(Number),
};
const FAILURE = { ...CALL, error: 'ServerError', status: 503, requestId: 'req-1' };
const RETRY_FIELDS = { ...FAILURE, attempt: 1, delayMs: 2_500, waitMs: 2_500 };
const LAST_FIELDS = { ...FAILURE, attempt: 2 };

/** A stream that keeps what a library writes to it. */
function collector() {
  const chunks: string[] = [];
  const stream = new Writable({
    write(chunk, _encoding, done) {
      chunks.push(String(chunk));
      done();
    },
  });
  return {
    stream,
    text: () => chunks.join(''),
    entries: () =>
      chunks
        .join('')
        .trim()
        .split('\n')
        .map((line): unknown => JSON.parse(line)),
  };
}

function toWinston(stream: Writable): winston.Logger {
  const transports = [new winston.transports.Stream({ stream })];
  return winston.createLogger({ format: winston.format.json(), transports });
}

/** Makes a call in virtual time, whatever becomes of it. */
async function listCouriers(
  script: Step | Step[],
  logger: Logger,
  options: TrackingClientOptions = {},
): Promise<void> {
  const { client } = makeClient(script, { logger, logLevel: 'warn', ...options });
  await settleInVirtualTime(() => client.couriers.list().catch(() => {}));
}

/** Makes a call that fails twice. */
function failTwice(logger: Logger): Promise<void> {
  return listCouriers(FAILING, logger, { retry: { retries: 1 } });
}

/** Returns the console output of `work`, as a terminal shows it. */
async function readConsole(run: () => Promise<void>): Promise<string[]> {
  const { stream, text } = collector();
  const printer = new Console(stream);
  const methods = ['debug', 'log', 'info', 'warn', 'error'] as const;
  const spies = methods.map((method) => vi.spyOn(console, method).mockImplementation(printer[method]));
  try {
    await run();
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
  return text().split('\n').slice(0, -1);
}

/** Returns what `work` writes to a stream of the process. */
async function readWrites(stream: NodeJS.WriteStream, run: () => Promise<void>): Promise<string[]> {
  const write = vi.spyOn(stream, 'write').mockReturnValue(true);
  try {
    await run();
    return write.mock.calls.map(([chunk]) => String(chunk));
  } finally {
    write.mockRestore();
  }
}

describe('the lines of a call', () => {
  /** The lines of a call at the level `debug`. */
  async function readLines(script: Step | Step[], options: TrackingClientOptions = {}) {
    const lines: [level: string, message: string, fields: unknown][] = [];
    const at = (level: string) => (message: string, fields?: LogFields) =>
      lines.push([level, message.replace('[tracking-client] ', ''), fields]);
    const logger = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
    await listCouriers(script, logger, { logLevel: 'debug', ...options });
    return lines;
  }

  const { durationMs: _, ...request } = CALL;
  const sent = (attempt: number) => [
    'debug',
    `${TITLE}: sending attempt ${attempt}`,
    { ...request, attempt },
  ];
  const responded = (status: number, fields: object) => [
    'debug',
    expect.stringMatching(`^${TITLE} responded with ${status} in \\d+ ms$`),
    { ...CALL, status, queuedMs: 0, ...fields },
  ];

  test('a success → one debug line for the request and one for the response', async () => {
    expect(await readLines(COURIERS)).toEqual([sent(1), responded(200, { attempt: 1, requestId: 'req-2' })]);
  });

  test('a call that waited for the limit → the wait in the line of its response', async () => {
    const lines: [string, LogFields | undefined][] = [];
    const debug = (message: string, fields?: LogFields) => void lines.push([message, fields]);
    const logger = { debug, info: debug, warn: debug, error: debug };
    const { client } = makeClient(COURIERS, { logger, logLevel: 'debug', rateLimit: {} });
    await settleInVirtualTime(() => Promise.all([client.couriers.list(), client.couriers.list()]));
    const responses = lines.filter(([message]) => message.includes(' responded with '));
    expect(responses).toMatchObject([
      [expect.stringMatching(/responded with 200 in \d+ ms$/), { queuedMs: 0 }],
      [
        expect.stringMatching(/responded with 200 in \d+ ms, after a wait of 10\d\d ms for the rate limit$/),
        {},
      ],
    ]);
    expect(responses[1]?.[1]?.['queuedMs']).toBeGreaterThanOrEqual(1_000);
  });

  test('a call that is aborted before its first attempt → a line that names no attempt', async () => {
    const lines = await readLines(COURIERS, { apiKey: () => Promise.reject(new Error('vault is sealed')) });
    expect(lines.map(([, message]) => message).join()).not.toContain('gave up after attempt 0');
  });

  test('a retry that succeeds → a warning for the retry, and the success at info', async () => {
    expect(await readLines([FAILING, COURIERS])).toEqual([
      sent(1),
      responded(503, { attempt: 1, requestId: 'req-1' }),
      ['warn', RETRY_LINE.replace('[tracking-client] ', ''), RETRY_FIELDS],
      sent(2),
      responded(200, { attempt: 2, requestId: 'req-2' }),
      ['info', `${TITLE} succeeded on attempt 2`, { ...CALL, attempt: 2, status: 200, requestId: 'req-2' }],
    ]);
  });

  test('no response → a line with the duration of the attempt and without a status', async () => {
    const never = () => new Promise<Response>(() => {});
    const [, retry] = await readLines([never, COURIERS], { timeoutMs: 50 });
    const message = `${TITLE} timed out after 50 ms (\`timeoutMs\`) while waiting for a response; the client retries after at least`;
    expect(retry).toEqual([
      'warn',
      expect.stringMatching(/ (?:\d{3} ms|1 s) \(attempt 2\)$/),
      { ...request, attempt: 1, durationMs: 50, error: 'TimeoutError', waitMs: expect.any(Number) },
    ]);
    expect(retry?.[1]).toContain(message);
  });

  test('a failure that is not retried → one debug line, no warning', async () => {
    const lines = await readLines({ status: 404, body: { errors: [{ code: 'tracker_not_found' }] } });
    const message = `${TITLE} responded with 404: tracker_not_found; the client gave up after attempt 1`;
    const fields = { ...CALL, attempt: 1, status: 404, error: 'NotFoundError' };
    expect(lines.at(-1)).toEqual(['debug', message, fields]);
    expect(lines.map(([level]) => level)).not.toContain('warn');
  });

  test('an abort after a retry → no warning, because the caller aborted', async () => {
    const controller = new AbortController();
    const warn = vi.fn();
    const debug = vi.fn();
    const logger = { debug, info: vi.fn(), warn, error: vi.fn() };
    const hooks = { onRetry: () => controller.abort('enough') };
    const { client } = makeClient(FAILING, { logger, logLevel: 'debug', hooks });
    await settleInVirtualTime(() => client.couriers.list({ signal: controller.signal }).catch(() => {}));
    expect(warn).toHaveBeenCalledOnce();
    expect(debug).toHaveBeenLastCalledWith(
      `[tracking-client] ${TITLE} was aborted; the client gave up after attempt 1`,
      expect.objectContaining({ attempt: 1 }),
    );
  });
});

describe('a call that fails twice, and a webhook callback that fails', () => {
  class PaymentError extends Error {
    override readonly name = 'PaymentError';
    readonly code = 'card_declined';
  }
  const MESSAGE = 'the card was declined at 100%d';
  const TEXT = `[tracking-client] A webhook callback failed for the event with the key "tracking/events:tracker-1:event-1": ${MESSAGE}`;
  const err = {
    name: 'PaymentError',
    message: MESSAGE,
    code: 'card_declined',
    // The first frame shows that the stack is that of the throw.
    stack: expect.stringMatching(/100%d\n +at .*lines\.test\.ts/),
  };

  async function failCallback(logger: Logger): Promise<void> {
    const onEvent = () => {
      throw new PaymentError(MESSAGE);
    };
    await makeHandler({ logger, onEvent })(post(payload(tracking('tracker-1', 'event-1'))));
  }

  const { stdSerializers: serializers } = bunyan;
  const CALL_ENTRIES = [
    { level: 40, msg: RETRY_LINE, ...RETRY_FIELDS },
    { level: 40, msg: LAST_LINE, ...LAST_FIELDS },
  ];

  test.each<[name: string, create: (stream: Writable) => Logger, expected: object[]]>([
    [
      'a child of pino',
      (stream) => pino(stream).child({ app: 'a' }),
      [...CALL_ENTRIES, { app: 'a', level: 50, msg: TEXT, err: { type: 'PaymentError', ...err } }],
    ],
    [
      'bunyan with the standard serializers',
      (stream) => bunyan.createLogger({ name: 'app', stream, serializers }),
      [...CALL_ENTRIES, { level: 50, msg: TEXT, err }],
    ],
    [
      'a child of winston',
      (stream) => toWinston(stream).child({ app: 'a' }),
      [
        { level: 'warn', message: RETRY_LINE, ...RETRY_FIELDS },
        { level: 'warn', message: LAST_LINE, ...LAST_FIELDS },
        { app: 'a', level: 'error', message: TEXT, err },
      ],
    ],
  ])('%s → an entry for retry, end and callback, with every field', async (_name, create, expected) => {
    const { stream, entries } = collector();
    const logger = create(stream);
    await failTwice(logger);
    await failCallback(logger);
    expect(entries()).toMatchObject(expected);
  });

  test('loggers of NestJS → lines in their context, the fields as JSON', async () => {
    const lines = await readWrites(process.stdout, () => failTwice(new NestLogger('Tracking')));
    expect(lines).toMatchObject([expect.stringContaining(RETRY_LINE), expect.stringContaining('[Tracking]')]);
    expect(lines.map((line) => JSON.parse(/\{"callId.*\}/.exec(line)?.[0] ?? ''))).toEqual([
      RETRY_FIELDS,
      LAST_FIELDS,
    ]);
    const logger = new ConsoleLogger('Tracking', { colors: false });
    const [line = ''] = await readWrites(process.stderr, () => failCallback(logger));
    expect(JSON.parse(line.slice(line.indexOf(TEXT) + TEXT.length))).toMatchObject({ err });
  });

  test('the console → a line for each retry and for the end; name, message, code and stack of the callback', async () => {
    expect(await readConsole(() => failTwice(console))).toEqual([RETRY_LINE, LAST_LINE]);
    const text = (await readConsole(() => failCallback(console))).join('\n');
    expect(text).toContain(`${TEXT} {"keys":`);
    expect(text).toMatch(/PaymentError: the card was declined at 100%d\n +at .*lines\.test\.ts/);
    expect(text).toContain("code: 'card_declined'");
  });
});
