import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { TrackingClient } from '../../src/client.ts';
import { API_KEY, BASE_URL } from '../support/make-client.ts';

const CALLS = 100;
const couriers = Array.from({ length: 1_000 }, (_, index) => ({
  courierCode: `courier-${index}`,
  courierName: `Courier ${index}`,
}));
const BODY = JSON.stringify({ data: { couriers } });

setFlagsFromString('--expose_gc');
// The flag above makes `gc` a global of every new context; a minor collection only visits young objects.
const collectGarbage = runInNewContext('gc') as (options: { readonly type: 'minor' }) => void;

/** Returns the bytes on the heap after the minor collections that decide about the objects of finished calls. */
async function readHeap(): Promise<number> {
  for (let round = 0; round < 3; round += 1) {
    await new Promise<void>((resolve) => {
      setImmediate(resolve);
    });
    collectGarbage({ type: 'minor' });
  }
  return process.memoryUsage().heapUsed;
}

test('many calls with large results → a minor garbage collection frees the data', async () => {
  const options = { baseUrl: BASE_URL, apiKey: API_KEY, rateLimit: false } as const;
  // The stub of other tests keeps each request.
  const fetch = async () => new Response(BODY, { headers: { 'content-type': 'application/json' } });
  const client = new TrackingClient({ ...options, fetch });
  const call = async (times: number) => {
    for (let index = 0; index < times; index += 1) await client.couriers.list();
  };
  await call(CALLS); // compiles code
  const before = await readHeap();
  await call(CALLS);
  const kilobytesPerCall = ((await readHeap()) - before) / 1_000 / CALLS;
  // The data of one call takes about 200 kB.
  expect(kilobytesPerCall).toBeLessThan(50);
});
