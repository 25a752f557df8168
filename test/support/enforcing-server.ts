import { fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type Counter, type CountingMode, makeCounter } from './counting.ts';

export interface EnforcingServerOptions {
  readonly mode: CountingMode;
  /** One account may send this many requests per second. */
  readonly limit: number;
  /** A request is counted up to this many milliseconds after it arrived, at random. Default 0. */
  readonly jitterMs?: number;
  /** Milliseconds between counting an accepted request and responding to it. Default 0. */
  readonly handlerMs?: number;
  /** The server listens on this many ports, so that clients need not share connections. Default 1. */
  readonly ports?: number;
}

export interface LogEntry {
  /** Milliseconds on the service's clock. */
  readonly at: number;
  readonly accepted: boolean;
}

export interface EnforcingServer {
  /** Each port has a base URL of its own. */
  readonly baseUrls: readonly string[];
  close(): Promise<void>;
}

const TRACKER = {
  trackerId: 'tracker-1',
  trackingNumber: 'LA680658838NL',
  isTracked: true,
  isSubscribed: true,
  createdAt: '2026-03-01T11:09:00.000Z',
};
const TRACKER_BODY = JSON.stringify({ data: { tracker: TRACKER } });
const REFUSAL_BODY = JSON.stringify({ errors: [{ code: 'too_many_requests' }], data: null });

/**
 * Starts a service on the loopback interface that only enforces its rate limit, and logs every request as accepted or refused.
 * Each account, named by the `Authorization` header, has a limit of its own.
 */
export async function startEnforcingServer(options: EnforcingServerOptions): Promise<EnforcingServer> {
  const { jitterMs = 0, handlerMs = 0 } = options;
  const accounts = new Map<string, { readonly counter: Counter; readonly log: LogEntry[] }>();

  const server = (port: number) =>
    createServer({ keepAliveTimeout: 120_000 }, async (request, response) => {
      request.resume();
      const name = request.headers.authorization ?? '';
      const account = accounts.get(name) ?? { counter: makeCounter(options.mode, options.limit), log: [] };
      accounts.set(name, account);
      const { counter, log } = account;
      response.setHeader('content-type', 'application/json');
      if (request.url === '/log') return response.end(JSON.stringify(log));

      if (jitterMs > 0) await sleep(Math.random() * jitterMs);
      const now = performance.now();
      const accepted = counter.tryCount(now);
      log.push({ at: now, accepted });
      setRateLimitHeaders(response, counter, now, accepted);
      if (accepted && handlerMs > 0) await sleep(handlerMs);
      response.statusCode = accepted ? 200 : 429;
      return response.end(accepted ? TRACKER_BODY : REFUSAL_BODY);
    }).listen(port, '127.0.0.1');

  const servers = Array.from({ length: options.ports ?? 1 }, () => server(0));
  await Promise.all(servers.map((each) => once(each, 'listening')));
  return {
    // A server that listens on TCP has an address with a port.
    baseUrls: servers.map((each) => `http://127.0.0.1:${(each.address() as AddressInfo).port}/v1`),
    close: async () => {
      for (const each of servers) {
        each.closeAllConnections();
        await new Promise((resolve) => each.close(resolve));
      }
    },
  };
}

/** Sets both families of rate-limit headers, and `Retry-After` on a refusal; delays are whole seconds, rounded up. */
function setRateLimitHeaders(response: ServerResponse, counter: Counter, now: number, accepted: boolean) {
  const resetSeconds = Math.max(1, Math.ceil(counter.resetMs(now) / 1_000));
  const remaining = counter.remaining(now);
  response.setHeader('ratelimit-limit', counter.limit);
  response.setHeader('ratelimit-remaining', remaining);
  response.setHeader('ratelimit-reset', resetSeconds);
  response.setHeader('x-ratelimit-limit', counter.limit);
  response.setHeader('x-ratelimit-remaining', remaining);
  response.setHeader('x-ratelimit-reset', Math.ceil(Date.now() / 1_000) + resetSeconds);
  if (!accepted) response.setHeader('retry-after', resetSeconds);
}

/** Starts the service in a process of its own, so that its timers and those of its clients do not delay each other. */
export async function forkEnforcingServer(options: EnforcingServerOptions): Promise<EnforcingServer> {
  const child = fork(fileURLToPath(import.meta.url), [JSON.stringify(options)], { stdio: 'inherit' });
  const exited = once(child, 'exit');
  // The child's first message is its list of URLs; if the child exits first, the value is its exit code.
  const [baseUrls] = (await Promise.race([once(child, 'message'), exited])) as [readonly string[] | number];
  if (!Array.isArray(baseUrls)) throw new Error(`Expected the server to start, got exit code ${baseUrls}`);
  return {
    baseUrls,
    close: async () => {
      child.disconnect();
      await exited;
    },
  };
}

/** Reads the requests of an account in the order in which the service counted them. */
export async function readLog(baseUrl: string, account: string): Promise<LogEntry[]> {
  const response = await fetch(new URL('/log', baseUrl), { headers: { authorization: `Bearer ${account}` } });
  // The server above responds with its log.
  const log = (await response.json()) as LogEntry[];
  return log.toSorted((a, b) => a.at - b.at);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { baseUrls } = await startEnforcingServer(JSON.parse(process.argv[2] ?? '{}'));
  process.send?.(baseUrls);
  process.once('disconnect', () => process.exit());
}
