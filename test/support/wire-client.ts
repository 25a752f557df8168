import { vi } from 'vitest';
import { TrackingClient } from '../../src/client.ts';
import { ENDPOINT_NAMES } from '../../src/endpoints.ts';
import type { TrackingClientOptions } from '../../src/options.ts';
import { API_KEY } from './make-client.ts';
import { type Behaviour, type ScriptedServer, startServer } from './scripted-server.ts';

/** Limits that no test reaches. */
export const PLENTY = Object.fromEntries(ENDPOINT_NAMES.map((name) => [name, 1_000]));

/** A client that really sends, without retries unless the options say otherwise. */
export function wireClient(baseUrl: string, options: TrackingClientOptions = {}): TrackingClient {
  const rateLimit = { limits: PLENTY };
  return new TrackingClient({
    baseUrl,
    apiKey: API_KEY,
    retry: false,
    logLevel: 'silent',
    rateLimit,
    ...options,
  });
}

/** A server that follows a script, and a client of it. */
export async function wireClientFor(
  script: Behaviour | readonly Behaviour[],
  options: TrackingClientOptions = {},
) {
  const server = await startServer(script);
  return { server, client: wireClient(server.baseUrl, options) };
}

/** Lets everything happen that waits for no timer. */
export function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

/**
 * A server that follows a script, and a client whose timers stand still until the test moves them, so that it can run
 * out of time at an exact point. The network is real. Give the timers back with `vi.useRealTimers()`.
 */
export async function stoppedClientFor(
  script: Behaviour | readonly Behaviour[],
  options: TrackingClientOptions = {},
) {
  const server = await startServer(script);
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  let responses = 0;
  const fetch = async (input: RequestInfo | URL, init?: RequestInit) => {
    const response = await globalThis.fetch(input, init);
    responses += 1;
    return response;
  };
  const until = async (isSo: () => boolean) => {
    while (!isSo()) await turn();
    // The pipeline has to take notice, too.
    for (let count = 0; count < 5; count += 1) await turn();
  };
  return {
    server,
    client: wireClient(server.baseUrl, { fetch, ...options }),
    untilRequested: () => until(() => server.requests.length > 0),
    untilHeaders: () => until(() => responses > 0),
  };
}

/** Runs out of the time of every attempt that reached the server, until the call is over. */
export async function timeOutEveryAttempt(server: ScriptedServer, call: PromiseLike<unknown>): Promise<void> {
  let isOver = false;
  let timedOut = 0;
  call.then(
    () => {
      isOver = true;
    },
    () => {
      isOver = true;
    },
  );
  while (!isOver) {
    await turn();
    const isNew = server.requests.length > timedOut;
    if (isNew) timedOut += 1;
    // A millisecond at a time for the waits between attempts, which are no longer than that.
    vi.advanceTimersByTime(isNew ? 90_000 : 1);
  }
}
