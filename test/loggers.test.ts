// The loggers that programs have, as they are: a retry is provoked, and the line is read where the library puts it.
import { Writable } from 'node:stream';
import { ConsoleLogger, Logger as NestLogger } from '@nestjs/common';
import pino from 'pino';
import { expect, test, vi } from 'vitest';
import winston from 'winston';
import type { Logger } from '../src/observability/logger.ts';
import { makeClient } from './support/make-client.ts';
import { settleInVirtualTime } from './support/virtual-time.ts';

const COURIERS = { body: { data: [] } };
const LINE =
  '[tracking-client] GET https://api.example.test/public/v1/couriers responded with 503; attempt 2 follows in 3 s or later';
const FIELDS = {
  callId: expect.any(String),
  endpoint: 'couriers.list',
  method: 'GET',
  path: '/couriers',
  attempt: 1,
  error: 'ServerError',
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
  const failing = { status: 503, headers: { 'retry-after': '2.5' } };
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
