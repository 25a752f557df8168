// Prints the files of `src` whose code runs during one warm call and one warm webhook, with the number of functions that V8
// counted in each. The call goes from the method to a fake `fetch` and back.
import { Session } from 'node:inspector/promises';
import { fileURLToPath } from 'node:url';
import { TrackingClient } from '../src/index.ts';
import { createWebhookHandler, MemoryDedupeStore } from '../src/webhooks/index.ts';

const SRC = fileURLToPath(new URL('../src/', import.meta.url));
/** More runs than a schema needs until it is compiled (`COMPILE_AFTER` in src/common/parsing.ts). */
const WARM_UP_RUNS = 100;

/** Finds the files whose code `run` executes, and counts the functions that ran in each. */
async function findPassedFiles(
  run: (index: number) => Promise<unknown>,
): Promise<[file: string, functions: number][]> {
  for (let index = 0; index < WARM_UP_RUNS; index += 1) await run(index);
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  // This resets the counts, so functions that ran while the modules loaded are left out.
  await session.post('Profiler.takePreciseCoverage');
  await run(WARM_UP_RUNS);
  const { result } = await session.post('Profiler.takePreciseCoverage');
  session.disconnect();
  return result
    .map(({ url, functions }): [string, number] => {
      const ran = functions.filter(
        // The module itself is a function without a name, and tsx adds `__name`.
        ({ functionName, ranges }) =>
          functionName === '' ? ranges[0]?.startOffset !== 0 : functionName !== '__name',
      );
      return [url, ran.filter(({ ranges }) => (ranges[0]?.count ?? 0) > 0).length];
    })
    .filter(
      ([url, functions]) => functions > 0 && url.startsWith('file:') && fileURLToPath(url).startsWith(SRC),
    )
    .map(([url, functions]): [string, number] => [fileURLToPath(url).slice(SRC.length), functions])
    .sort(([a], [b]) => (a < b ? -1 : 1));
}

function print(title: string, files: readonly [string, number][]): void {
  const functions = files.reduce((sum, [, count]) => sum + count, 0);
  console.log(`${title}: ${files.length} files, ${functions} functions`);
  for (const [file, count] of files) console.log(`  ${file} (${count})`);
}

const event = { eventId: 'e', occurrenceDatetime: '2026-03-04T17:12:57', status: 'Arrived' };
const tracking = {
  tracker: {
    trackerId: 't',
    trackingNumber: 'LA680658838NL',
    isTracked: true,
    isSubscribed: true,
    createdAt: '2026-03-01T11:09:00.000Z',
  },
  events: [event],
};
const client = new TrackingClient({
  baseUrl: 'https://api.example.com/v1',
  apiKey: 'key',
  rateLimit: { limits: { 'trackers.results': 1_000_000 } },
  fetch: async () => Response.json({ data: { trackings: [tracking] } }),
});
print('trackers.results', await findPassedFiles(async () => client.trackers.results('t')));

const handle = createWebhookHandler({
  secret: 'a-secret-of-some-length',
  store: new MemoryDedupeStore(),
  onEvent: () => {},
});
print(
  'a webhook of one event',
  await findPassedFiles(async (index) => {
    const events = [{ ...event, eventId: `e-${index}` }];
    const body = JSON.stringify({
      metadata: { topic: 'tracking/events' },
      trackings: [{ ...tracking, events }],
    });
    const headers = { authorization: 'Bearer a-secret-of-some-length', 'content-type': 'application/json' };
    const response = await handle(
      new Request('https://app.example.com/hook', { method: 'POST', headers, body }),
    );
    if (response.status !== 200)
      throw new Error(`Expected 200, got ${response.status}: ${await response.text()}`);
  }),
);
