// The loggers that programs have, as they are: a retry or a failed callback is provoked, and the line is read where the
// library puts it.
import { Writable } from 'node:stream';
import { ConsoleLogger, Logger as NestLogger } from '@nestjs/common';
import bunyan from 'bunyan';
import pino from 'pino';
import { describe, expect, test, vi } from 'vitest';
import winston from 'winston';
import type { Logger } from '../src/observability/logger.ts';
import { makeClient } from './support/make-client.ts';
import { settleInVirtualTime } from './support/virtual-time.ts';
import { makeHandler, post } from './webhooks/make-handler.ts';
import { payload, tracking } from './webhooks/support.ts';

const COURIERS = { body: { data: [] } };
const LINE =
  '[tracking-client] GET https://api.example.test/public/v1/couriers responded with 503 (request req-1); attempt 2 follows in 3 s or later';
const FIELDS = {
  callId: expect.any(String),
  endpoint: 'couriers.list',
  method: 'GET',
  path: '/couriers',
  attempt: 1,
  error: 'ServerError',
  status: 503,
  requestId: 'req-1',
  delayMs: 2_500,
};

/** A stream that keeps what a library writes to it. */
function collector() {
  const chunks: string[] = [];
  const stream = new Writable({
    write(chunk, _encoding, done) {
      chunks.push(String(chunk));
      done();
    },
  });
  return { stream, text: () => chunks.join('') };
}

async function retryOnce(logger: Logger): Promise<void> {
  const failing = { status: 503, headers: { 'retry-after': '2.5', 'x-request-id': 'req-1' } };
  const { client } = makeClient([failing, COURIERS], { logger, logLevel: 'warn' });
  await settleInVirtualTime(() => client.couriers.list());
}

test('pino → one entry with the message and every field', async () => {
  const { stream, text } = collector();
  await retryOnce(pino(stream));
  expect(JSON.parse(text())).toMatchObject({ level: 40, msg: LINE, ...FIELDS });
});

test('a child of pino → its bindings beside the fields', async () => {
  const { stream, text } = collector();
  await retryOnce(pino(stream).child({ module: 'shipping' }));
  expect(JSON.parse(text())).toMatchObject({ module: 'shipping', msg: LINE, ...FIELDS });
});

test('winston → one entry with the message and every field', async () => {
  const { stream, text } = collector();
  const transports = [new winston.transports.Stream({ stream })];
  await retryOnce(winston.createLogger({ format: winston.format.json(), transports }));
  expect(JSON.parse(text())).toEqual({ level: 'warn', message: LINE, ...FIELDS });
});

test.each([
  ['bunyan', (logger: bunyan) => logger],
  ['a child of bunyan', (logger: bunyan) => logger.child({ module: 'shipping' })],
])('%s → one entry with the message and every field', async (_name, derive) => {
  const { stream, text } = collector();
  await retryOnce(derive(bunyan.createLogger({ name: 'app', stream })));
  expect(JSON.parse(text())).toMatchObject({ level: 40, msg: LINE, ...FIELDS });
});

test('the console → one text, the fields as JSON at its end', async () => {
  const warn = vi.spyOn(console, 'warn').mockImplementation(() => {});
  try {
    await retryOnce(console);
    expect(warn).toHaveBeenCalledOnce();
    const [text, ...rest] = warn.mock.calls[0] ?? [];
    expect(rest).toEqual([]);
    expect(text.slice(0, LINE.length + 1)).toBe(`${LINE} `);
    expect(JSON.parse(text.slice(LINE.length))).toEqual(FIELDS);
  } finally {
    warn.mockRestore();
  }
});

test.each([
  ['a Logger', new NestLogger('Tracking')],
  ['a ConsoleLogger', new ConsoleLogger('Tracking')],
])('%s of NestJS → one line in its context, with every field', async (_name, logger) => {
  const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
  try {
    await retryOnce(logger);
    const text = write.mock.calls.map(([chunk]) => String(chunk)).join('');
    expect(text.trim().split('\n')).toHaveLength(1);
    expect(text).toContain('[Tracking]');
    expect(text).toContain(LINE);
    expect(JSON.parse(/\{"callId.*\}/.exec(text)?.[0] ?? '')).toEqual(FIELDS);
  } finally {
    write.mockRestore();
  }
});

describe('a webhook callback that fails', () => {
  class PaymentError extends Error {
    override readonly name = 'PaymentError';
    readonly code = 'card_declined';
  }
  const MESSAGE = 'the card was declined at 100%d';
  const TEXT = `[tracking-client] Webhook callback failed: ${MESSAGE}`;
  const ERROR = {
    name: 'PaymentError',
    message: MESSAGE,
    code: 'card_declined',
    // The first frame shows that the stack is that of the throw.
    stack: expect.stringMatching(/100%d\n +at .*loggers\.test\.ts/),
  };

  async function failCallback(logger: Logger): Promise<void> {
    const onEvent = () => {
      throw new PaymentError(MESSAGE);
    };
    await makeHandler({ logger, onEvent })(post(payload(tracking('tracker-1', 'event-1'))));
  }

  /** The entry of the failure among the lines of JSON. */
  function findEntry(text: string): unknown {
    const lines = text.split('\n').filter((line) => line.includes('Webhook callback failed'));
    expect(lines).toHaveLength(1);
    return JSON.parse(lines[0] ?? '');
  }

  async function captureOutput(run: () => Promise<void>): Promise<string> {
    const chunks: string[] = [];
    const write = (chunk: unknown) => chunks.push(String(chunk)) > 0;
    const spies = [process.stdout, process.stderr].map((stream) =>
      vi.spyOn(stream, 'write').mockImplementation(write),
    );
    try {
      await run();
    } finally {
      for (const spy of spies) spy.mockRestore();
    }
    return chunks.join('');
  }

  test('pino → name, message, code and stack', async () => {
    const { stream, text } = collector();
    await failCallback(pino(stream));
    expect(findEntry(text())).toMatchObject({
      level: 50,
      msg: TEXT,
      err: { type: 'PaymentError', ...ERROR },
    });
  });

  test('winston → name, message, code and stack', async () => {
    const { stream, text } = collector();
    const transports = [new winston.transports.Stream({ stream })];
    await failCallback(winston.createLogger({ format: winston.format.json(), transports }));
    expect(findEntry(text())).toMatchObject({ level: 'error', message: TEXT, err: ERROR });
  });

  test('a child of winston → its fields beside the error', async () => {
    const { stream, text } = collector();
    const transports = [new winston.transports.Stream({ stream })];
    const parent = winston.createLogger({ format: winston.format.json(), transports });
    await failCallback(parent.child({ module: 'shipping' }));
    expect(findEntry(text())).toMatchObject({ module: 'shipping', message: TEXT, err: ERROR });
  });

  test.each([
    ['without serializers', {}],
    ['with the standard serializers', { serializers: bunyan.stdSerializers }],
  ])('bunyan %s → name, message, code and stack', async (_name, options) => {
    const { stream, text } = collector();
    await failCallback(bunyan.createLogger({ name: 'app', stream, ...options }));
    expect(findEntry(text())).toMatchObject({ level: 50, msg: TEXT, err: ERROR });
  });

  test('a ConsoleLogger of NestJS → name, message, code and stack in the text', async () => {
    const logger = new ConsoleLogger('Tracking', { colors: false });
    const text = await captureOutput(() => failCallback(logger));
    const line = text.split('\n').find((candidate) => candidate.includes(TEXT)) ?? '';
    expect(JSON.parse(line.slice(line.indexOf(TEXT) + TEXT.length))).toMatchObject({ err: ERROR });
  });

  test('a ConsoleLogger of NestJS that writes JSON → name, message, code and stack in its message', async () => {
    const logger = new ConsoleLogger('Tracking', { json: true, colors: false });
    const entry = findEntry(await captureOutput(() => failCallback(logger)));
    expect(entry).toMatchObject({ level: 'error', message: expect.stringContaining(TEXT) });
    const { message } = entry as { message: string }; // Checked one line above.
    expect(JSON.parse(message.slice(TEXT.length))).toMatchObject({ err: ERROR });
  });

  test('bunyan, a code that is a bigint → the line without fields', async () => {
    const { stream, text } = collector();
    const logger = bunyan.createLogger({ name: 'app', stream });
    const onEvent = () => {
      throw Object.assign(new Error('gone'), { code: 1n });
    };
    await makeHandler({ logger, onEvent })(post(payload(tracking('tracker-1', 'event-1'))));
    expect(findEntry(text())).toMatchObject({
      level: 50,
      msg: '[tracking-client] Webhook callback failed: gone',
    });
  });

  test('the console → name, message, code and stack', async () => {
    const { stream, text } = collector();
    const { Console } = await import('node:console');
    const { error } = new Console(stream);
    const spy = vi.spyOn(console, 'error').mockImplementation(error);
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => {});
    try {
      await failCallback(console);
    } finally {
      spy.mockRestore();
      warn.mockRestore();
    }
    expect(text()).toContain(`${TEXT} {"keys":`);
    expect(text()).toMatch(/PaymentError: the card was declined at 100%d\n +at .*loggers\.test\.ts/);
    expect(text()).toContain("code: 'card_declined'");
  });
});

describe('the lines of a call on the console', () => {
  async function countLines(responses: readonly { status: number }[]) {
    const methods = ['debug', 'log', 'info', 'warn', 'error'] as const;
    const spies = methods.map((method) => vi.spyOn(console, method).mockImplementation(() => {}));
    try {
      const { client } = makeClient([...responses], {
        logger: console,
        logLevel: 'warn',
        retry: { retries: 2 },
      });
      const outcome = await settleInVirtualTime(() =>
        client.couriers.list().then(
          () => 'success',
          (error: Error) => error.name,
        ),
      );
      const lines = spies.flatMap((spy) => spy.mock.calls.map(([text]) => String(text)));
      return { outcome, lines };
    } finally {
      for (const spy of spies) spy.mockRestore();
    }
  }

  test('a retry that succeeds → one line', async () => {
    const { outcome, lines } = await countLines([{ status: 503 }, { status: 200, ...COURIERS }]);
    expect(outcome).toBe('success');
    expect(lines).toEqual([expect.stringContaining('attempt 2 follows')]);
  });

  test('a failure of every attempt → one line a retry, and none for the rejection', async () => {
    const { outcome, lines } = await countLines([{ status: 503 }]);
    expect(outcome).toBe('ServerError');
    expect(lines).toEqual([
      expect.stringContaining('attempt 2 follows'),
      expect.stringContaining('attempt 3 follows'),
    ]);
  });
});
