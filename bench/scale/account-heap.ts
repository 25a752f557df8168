import { TokenBucketLimiter, TrackingClient } from '../../src/index.ts';
import { usedHeapBytes } from '../heap.ts';
import type { Figure } from '../report.ts';
import { formatCount } from '../statistics.ts';

const ACCOUNTS = 2000;
const MAX_ACCOUNT_KB = 6;

/**
 * Measures the memory of an account between its calls: its client in a map, and its bucket in a limiter that all clients share. The
 * clock must stand still, because the limiter deletes buckets that are idle for ten seconds.
 */
export async function measureAccountHeap(): Promise<Figure> {
  // Create clients first, so that compiled code and caches are not counted.
  await measureBytesPerAccount(1);
  const clientBytes = await measureBytesPerAccount(0);
  const bytes = await measureBytesPerAccount(1);
  const toKb = (value: number) => (value / 1000).toFixed(1);
  return {
    name: `heap per account, ${formatCount(ACCOUNTS)} clients with one limiter after a \`results\` call each`,
    target: `<= ${MAX_ACCOUNT_KB} kB`,
    isReached: bytes > 0 && bytes <= MAX_ACCOUNT_KB * 1000,
    found: `${toKb(bytes)} kB: ${toKb(clientBytes)} kB for the client, ${toKb(bytes - clientBytes)} kB for the endpoint that it called`,
  };
}

async function measureBytesPerAccount(calls: number): Promise<number> {
  const tracker = { trackerId: 't1', trackingNumber: 'RR123456785CN', isTracked: true };
  const fetch = async () => Response.json({ data: { trackings: [{ tracker, events: [] }] } });
  const heapBefore = await usedHeapBytes();
  const limiter = new TokenBucketLimiter();
  const clients = new Map<string, TrackingClient>();
  for (let index = 0; index < ACCOUNTS; index += 1) {
    const account = `account-${index}`;
    const apiKey = () => `key-of-${account}`;
    const client = new TrackingClient({
      baseUrl: 'https://tracking.test/v1',
      account,
      apiKey,
      fetch,
      limiter,
    });
    clients.set(account, client);
    for (let call = 0; call < calls; call += 1) await client.trackers.results('t1');
  }
  const bytes = ((await usedHeapBytes()) - heapBefore) / ACCOUNTS;
  // Use the map once more, so that it is not collected before the heap is measured.
  if (clients.size !== ACCOUNTS) throw new Error(`Expected ${ACCOUNTS} clients, got ${clients.size}`);
  return bytes;
}
