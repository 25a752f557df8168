import { runInNewContext } from 'node:vm';
import { describe, expect, test, vi } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import { type LogLevel, limitLines, resolveLogger } from '../../src/observability/logger.ts';
import { settled } from '../support/settled.ts';

const METHODS = ['debug', 'info', 'warn', 'error'] as const;

function makeLogger() {
  return { debug: vi.fn(), info: vi.fn(), warn: vi.fn(), error: vi.fn() };
}

/** Logs a line of each level, and returns the methods of the logger that were called. */
function readLogged(logger: ReturnType<typeof makeLogger>, level?: LogLevel) {
  const lines = resolveLogger(logger, level);
  for (const method of METHODS) lines[method]('line');
  return METHODS.filter((method) => logger[method].mock.calls.length > 0);
}

test.each([
  ['debug', ['debug', 'info', 'warn', 'error']],
  ['info', ['info', 'warn', 'error']],
  ['warn', ['warn', 'error']],
  ['error', ['error']],
  ['silent', []],
] as const)('level %s → lines of %j', (level, expected) => {
  expect(readLogged(makeLogger(), level)).toEqual(expected);
});

test('a logger that is an instance of a class → its methods are called on the instance', () => {
  class Collector {
    readonly lines: string[] = [];
    debug(line: string) {
      this.lines.push(line);
    }
    info = this.debug;
    warn = this.debug;
    error = this.debug;
  }
  const logger = new Collector();
  resolveLogger(logger, 'debug').debug('line');
  expect(logger.lines).toEqual(['[tracking-client] line']);
});

test('a logger that rejects → no unhandled rejection', async () => {
  const unhandled = vi.fn();
  process.on('unhandledRejection', unhandled);
  try {
    const logger = { ...makeLogger(), warn: () => Promise.reject(new Error('disk full')) };
    resolveLogger(logger, 'debug').warn('line');
    await settled();
    expect(unhandled).not.toHaveBeenCalled();
  } finally {
    process.off('unhandledRejection', unhandled);
  }
});

test('a logger with `log` instead of `info` → `log` gets the info lines, with the fields as JSON', () => {
  const { info: _info, ...others } = makeLogger();
  const logger = { ...others, log: vi.fn() };
  resolveLogger(logger, 'debug').info('line', { attempt: 1 });
  expect(logger.log).toHaveBeenCalledExactlyOnceWith('[tracking-client] line {"attempt":1}');
});

test.each([
  ['info', 'undefined'],
  ['warn', 'undefined'],
])('a logger without `%s` → ConfigurationError that names it', (method, kind) => {
  const logger = { ...makeLogger(), [method]: undefined };
  expect(() => resolveLogger(logger, 'debug')).toThrow(
    new ConfigurationError(`Expected \`logger.${method}\` to be a function, got ${kind}`),
  );
});

test('an error of another realm → logged with name, message, code and stack', () => {
  const logger = makeLogger();
  const err: unknown = runInNewContext("Object.assign(new TypeError('no such order'), { code: 'gone' })");
  expect(err).not.toBeInstanceOf(Error);
  resolveLogger(logger, 'debug').error('line', { err });
  const described = {
    name: 'TypeError',
    message: 'no such order',
    code: 'gone',
    stack: expect.stringContaining('TypeError: no such order\n'),
  };
  expect(logger.error).toHaveBeenCalledExactlyOnceWith('[tracking-client] line', { err: described });
  // `expect` does not recognise an error of another realm as an error.
  expect(Object.keys(logger.error.mock.calls[0]?.[1].err)).toEqual(['name', 'message', 'code', 'stack']);
});

const circular: { self?: unknown } = {};
circular.self = circular;

test.each([
  ['a bigint', 1n],
  ['circular', circular],
])('a field that is %s, which JSON cannot hold → the line is logged without fields', (_name, field) => {
  const { info: _info, ...others } = makeLogger();
  const logger = { ...others, log: vi.fn() };
  resolveLogger(logger, 'debug').error('line', { field });
  expect(logger.error).toHaveBeenCalledExactlyOnceWith('[tracking-client] line');
});

describe('TRACKING_LOG', () => {
  test.each([
    ['debug', ['debug', 'info', 'warn', 'error']],
    ['ERROR', ['error']],
    ['silent', []],
    ['', ['warn', 'error']],
  ])('%j → lines of %j', (level, methods) => {
    vi.stubEnv('TRACKING_LOG', level);
    expect(readLogged(makeLogger())).toEqual(methods);
  });

  test('an unknown level → one warning that lists the levels, then the default level', () => {
    vi.stubEnv('TRACKING_LOG', 'verbose');
    const logger = makeLogger();
    expect(readLogged(logger)).toEqual(['warn', 'error']);
    expect(logger.warn.mock.calls).toEqual([
      [
        `[tracking-client] Expected TRACKING_LOG to be one of debug, info, warn, error, silent, got 'verbose'; the log level is "warn"`,
      ],
      ['[tracking-client] line'],
    ]);
  });

  test('an environment that may not be read, as in Deno → the default level', () => {
    const get = () => {
      throw new Error('Requires env access');
    };
    vi.spyOn(process, 'env', 'get').mockReturnValue(new Proxy({}, { get }));
    expect(readLogged(makeLogger())).toEqual(['warn', 'error']);
  });

  test.each(['debug', 'verbose'])('%s beside a level in the options → that level, no warning', (word) => {
    vi.stubEnv('TRACKING_LOG', word);
    expect(readLogged(makeLogger(), 'error')).toEqual(['error']);
  });
});

test('lines that are left out → counted from the last line that was logged', () => {
  vi.useFakeTimers();
  const count = limitLines();
  const counts = [count(), count(), count()];
  for (const repeats of [2, 1, 1]) {
    vi.advanceTimersByTime(60_000);
    for (let line = 0; line < repeats; line += 1) counts.push(count());
  }
  expect(counts).toEqual([0, undefined, undefined, 2, undefined, 1, 0]);
});
