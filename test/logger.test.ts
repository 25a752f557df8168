import { expect, test, vi } from 'vitest';
import { LOG_LEVELS, leveledLogger } from '../src/logging.ts';

const METHODS = ['debug', 'info', 'warn', 'error'] as const;

function makeLogger() {
  return { debug: vi.fn(), info: vi.fn(), warn: vi.fn(), error: vi.fn() };
}

test.each([
  ['debug', ['debug', 'info', 'warn', 'error']],
  ['info', ['info', 'warn', 'error']],
  ['warn', ['warn', 'error']],
  ['error', ['error']],
  ['silent', []],
] as const)('level %s → lines of %j', (level, expected) => {
  const logger = makeLogger();
  const leveled = leveledLogger(logger, level);
  for (const method of METHODS) leveled[method]('line');
  expect(METHODS.filter((method) => logger[method].mock.calls.length > 0)).toEqual(expected);
});

test('a line → marked with the name of the package, fields as they are', () => {
  const logger = makeLogger();
  leveledLogger(logger, 'debug').warn('line', { attempt: 1 });
  expect(logger.warn).toHaveBeenCalledExactlyOnceWith('[tracking-client] line', { attempt: 1 });
});

test('a line without fields → one argument', () => {
  const logger = makeLogger();
  leveledLogger(logger, 'debug').info('line');
  expect(logger.info).toHaveBeenCalledExactlyOnceWith('[tracking-client] line');
});

test('a logger that is an instance of a class → called as a method', () => {
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
  leveledLogger(logger, 'debug').debug('line');
  expect(logger.lines).toEqual(['[tracking-client] line']);
});

test('a logger that throws → its caller goes on', () => {
  const logger = makeLogger();
  logger.error.mockImplementation(() => {
    throw new Error('disk full');
  });
  expect(() => leveledLogger(logger, 'debug').error('line')).not.toThrow();
  expect(logger.error).toHaveBeenCalledOnce();
});

test('a logger that rejects → nobody has to handle it', async () => {
  const unhandled = vi.fn();
  process.on('unhandledRejection', unhandled);
  try {
    const logger = { ...makeLogger(), warn: () => Promise.reject(new Error('disk full')) };
    leveledLogger(logger, 'debug').warn('line');
    await new Promise((resolve) => setImmediate(resolve));
    expect(unhandled).not.toHaveBeenCalled();
  } finally {
    process.off('unhandledRejection', unhandled);
  }
});

test('the levels → from all lines to none', () => {
  expect(LOG_LEVELS).toEqual(['debug', 'info', 'warn', 'error', 'silent']);
});
