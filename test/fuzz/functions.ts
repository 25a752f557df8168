import fc from 'fast-check';
import { TrackingError } from '../../src/errors.ts';
import { anyText } from '../support/any-text.ts';
import { API_KEY, BASE_URL } from '../support/make-client.ts';
import { FUNCTIONS, nothing, type Options, OWN, REASON, throws } from './function-table.ts';
import { must, printed } from './must.ts';
import { property } from './property.ts';

/** Nothing that anyone would give. */
const junk = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    undefined,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    -1,
    0,
    -0,
    0.5,
    2 ** 31,
    2 ** 53,
    '',
    ' ',
    '1',
    'false',
    API_KEY,
    [API_KEY],
    Symbol('s'),
    nothing,
    throws,
    Object.create(null),
    new Date(Number.NaN),
    new URL(BASE_URL),
    [[]],
    { length: 1e9 },
  ),
  fc.anything({
    maxDepth: 1,
    maxKeys: 2,
    withBigInt: true,
    withDate: true,
    withMap: true,
    withSet: true,
    withNullPrototype: true,
    withTypedArray: true,
    withSparseArray: true,
  }),
  anyText({ maxLength: 10 }),
);

/** Options that are right but for a few; the first value of a list is the usual one. */
function optionsFrom(options: Options): fc.Arbitrary<unknown> {
  const given = Object.fromEntries(
    Object.entries(options).map(([name, values]) => [
      name,
      fc.oneof(
        { weight: 8, arbitrary: fc.constant(values[0]) },
        { weight: 3, arbitrary: fc.constantFrom(...values) },
        { weight: 1, arbitrary: junk },
      ),
    ]),
  );
  const record = fc.record(given, {
    requiredKeys: Object.keys(given).filter((name) =>
      /^(baseUrl|apiKey|fetch|redis|pool|store|inbox|secret|target|fake|timeoutMs|trackingNumber|createStore|method|path)$/.test(
        name,
      ),
    ),
  });
  return fc.oneof(
    { weight: 6, arbitrary: record },
    {
      weight: 1,
      arbitrary: fc.tuple(record, fc.string({ maxLength: 8 })).map(([all, name]) => ({ ...all, [name]: 1 })),
    },
    { weight: 2, arbitrary: junk },
  );
}

const invocation = fc
  .constantFrom(...Object.entries(FUNCTIONS))
  .chain(([name, { options, run }]) =>
    fc.record({ name: fc.constant(name), given: optionsFrom(options), run: fc.constant(run) }),
  );

const CONSOLE = ['debug', 'log', 'info', 'warn', 'error'] as const;
const SLACK_MS = 10_000;

export const functions = property(
  'functions',
  'options and arguments of every public function: a typed error or a result, and never the key',
  1_000,
  invocation,
  async () => {
    const seen: unknown[] = [];
    const originals = CONSOLE.map((method) => console[method]);
    for (const method of CONSOLE) console[method] = (...what: unknown[]) => void seen.push(what);
    return {
      async check({ given, run }) {
        seen.length = 0;
        const startedAt = performance.now();
        let error: unknown;
        try {
          await run(given);
        } catch (thrown) {
          error = thrown;
          must(
            error instanceof TrackingError || error === REASON || error === OWN,
            () => `no typed error: ${printed(error)}`,
          );
        }
        must(performance.now() - startedAt < SLACK_MS, () => `took ${performance.now() - startedAt} ms`);
        must(!printed([error, seen]).includes(API_KEY), () => `shows the key: ${printed([error, seen])}`);
      },
      async stop() {
        for (const [index, method] of CONSOLE.entries())
          console[method] = originals[index] ?? console[method];
      },
    };
  },
);
