import { expect, test } from 'vitest';
import * as root from '../../src/index.ts';
import * as opentelemetry from '../../src/opentelemetry/index.ts';
import * as postgres from '../../src/postgres/index.ts';
import * as redis from '../../src/redis/index.ts';
import * as testing from '../../src/testing/index.ts';
import * as msw from '../../src/testing/msw.ts';
import * as webhooks from '../../src/webhooks/index.ts';
import { FUNCTIONS } from './function-table.ts';

/** Made by this package only: errors, and what a call gives. */
function isResult(value: object): boolean {
  return value === root.ApiPromise || Object(value).prototype instanceof Error;
}

test('every function that the package exports → fuzzed', () => {
  const exported = [root, webhooks, redis, postgres, opentelemetry, testing, msw].flatMap((entry) =>
    Object.entries(entry),
  );
  const functions = exported.flatMap(([name, value]) =>
    typeof value === 'function' && !isResult(value) ? [name] : [],
  );
  const fuzzed = Object.keys(FUNCTIONS).map((name) => name.split('.')[0]);
  expect(functions.length).toBeGreaterThan(30);
  expect(functions.filter((name) => !fuzzed.includes(name))).toEqual([]);
});
