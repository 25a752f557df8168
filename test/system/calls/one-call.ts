/** Makes one call without retries, and tells its parent how it ended. */
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

async function run(): Promise<void> {
  if (call === 'search') return void (await tracking.search(input));
  for await (const { errors } of trackers.createMany([input]))
    if (errors?.[0]?.code === 'timeout') throw new Error(errors[0].message ?? '');
}

const error = await run().then(
  () => null,
  (reason: unknown) => String(reason),
);
process.send?.({ error }, () => process.disconnect());
