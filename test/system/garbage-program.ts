/** Sends its parent the kilobytes of one call that a minor garbage collection leaves; needs `--expose-gc`. */
import { TrackingClient } from '../../src/index.ts';

const CALLS = 100;
const couriers = Array.from({ length: 1_000 }, (_, index) => ({
  courierCode: `courier-${index}`,
  courierName: `Courier ${index}`,
}));
const body = JSON.stringify({ data: { couriers } });
const client = new TrackingClient({
  baseUrl: 'http://127.0.0.1:1',
  apiKey: 'key',
  rateLimit: false,
  fetch: async () => new Response(body, { headers: { 'content-type': 'application/json' } }),
});

async function call(times: number): Promise<void> {
  for (let index = 0; index < times; index += 1) await client.couriers.list();
}

/** Returns the bytes on the heap after the minor collections that decide about the objects of finished calls. */
async function readHeap(): Promise<number> {
  for (let round = 0; round < 3; round += 1) {
    await new Promise<void>((resolve) => {
      setImmediate(resolve);
    });
    globalThis.gc?.({ type: 'minor' });
  }
  return process.memoryUsage().heapUsed;
}

await call(CALLS); // compiles code
globalThis.gc?.(); // so that no full collection is due while the program measures
const before = await readHeap();
await call(CALLS);
process.send?.(((await readHeap()) - before) / 1_000 / CALLS);
