import { vi } from 'vitest';
import { TrackingClient } from '../../src/client.ts';
import { ENDPOINT_NAMES } from '../../src/endpoints.ts';
import type { TrackingClientOptions } from '../../src/options.ts';
import { API_KEY } from './make-client.ts';
import { type Behaviour, type ScriptedServer, startServer } from './scripted-server.ts';
import { settled } from './settled.ts';

/** Limits that no test reaches. */
const PLENTY = Object.fromEntries(ENDPOINT_NAMES.map((name) => [name, 1_000]));

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
    while (!isSo()) await settled();
    // Then the pipeline handles what arrived.
    for (let count = 0; count < 5; count += 1) await settled();
  };
  return {
    server,
    client: wireClient(server.baseUrl, { fetch, ...options }),
    untilRequested: () => until(() => server.requests.length > 0),
    untilHeaders: () => until(() => responses > 0),
  };
}

/** Small, so that a response over a loopback connection comes long before an attempt would run out of time. */
const STEP_MS = 5;

/** Advances stopped timers, one step per turn of the event loop, until a call settles; returns its outcome. */
export async function settleWithStoppedTimers<T>(
  call: PromiseLike<T>,
  chooseStepMs: () => number = () => STEP_MS,
): Promise<T> {
  let isOver = false;
  const end = () => {
    isOver = true;
  };
  call.then(end, end);
  while (!isOver) {
    await settled();
    vi.advanceTimersByTime(chooseStepMs());
  }
  return await call;
}

/** Lets every attempt that reached the server time out until the call settles; returns its outcome. */
export function timeOutEveryAttempt<T>(server: ScriptedServer, call: PromiseLike<T>): Promise<T> {
  let timedOut = 0;
  return settleWithStoppedTimers(call, () => {
    if (server.requests.length === timedOut) return STEP_MS;
    timedOut += 1;
    return 90_000;
  });
}
