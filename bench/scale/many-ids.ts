import { monitorEventLoopDelay } from 'node:perf_hooks';
import { TrackingClient } from '../../src/index.ts';
import type { Figure } from './case.ts';

const IDS = 300_000;
const MAX_BLOCK_MS = 50;

/** Reads 300,000 ids in real time, and measures for how long the event loop is blocked. */
export async function measureManyIds(): Promise<Figure> {
  const ids = Array.from({ length: IDS }, (_, index) => `tracker-${index}-0123456789abcdef`);
  const fetch = () => Promise.reject(new Error('nothing is due in this bench'));
  const client = new TrackingClient({ baseUrl: 'https://tracking.test/v1', apiKey: 'bench', fetch });
  const stream = client.trackers.pollMany(ids);
  await new Promise((resolve) => setTimeout(resolve, 100));
  const delays = monitorEventLoopDelay({ resolution: 1 });
  const startedAt = performance.now();
  delays.enable();
  const pending = stream.next();
  while (stream.size < IDS) await new Promise((resolve) => setTimeout(resolve, 20));
  const readMs = performance.now() - startedAt;
  delays.disable();
  await stream.return();
  await pending;
  const blockedMs = delays.max / 1e6;
  return {
    name: `pollMany reads ${IDS.toLocaleString('en')} ids of an array`,
    target: `no block of the event loop longer than ${MAX_BLOCK_MS} ms`,
    isReached: blockedMs <= MAX_BLOCK_MS,
    found: `longest block ${blockedMs.toFixed(1)} ms, ${readMs.toFixed(0)} ms in all`,
    values: { blockedMs, readMs },
  };
}
