/** Makes one call without retries, and tells its parent the result, or the error. */
import { TrackingClient } from '../../../src/index.ts';

// The test writes this argument with `JSON.stringify` of an object with these fields.
const { baseUrl, call, timeoutMs } = JSON.parse(process.argv[2] ?? '') as {
  readonly baseUrl: string;
  readonly call: 'search' | 'createMany';
  readonly timeoutMs: number;
};
const input = { trackingNumber: 'LA680658838NL' };
const { tracking, trackers } = new TrackingClient({
  baseUrl,
  apiKey: 'key',
  timeoutMs,
  retry: false,
  logLevel: 'error',
});

async function run(): Promise<unknown> {
  if (call === 'search') return tracking.search(input);
  const statuses: string[] = [];
  for await (const { status } of trackers.createMany([input])) statuses.push(status);
  return statuses;
}

const result = await run().catch((reason: unknown) => String(reason));
process.send?.({ result }, () => process.disconnect());
