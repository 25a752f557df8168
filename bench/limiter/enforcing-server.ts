/**
 * A service that does nothing but enforce its rate limit, and remembers what it counted and what it refused.
 * Each account (the `Authorization` header) has an allowance of its own per method and path.
 *
 * Alone: `npx tsx bench/limiter/enforcing-server.ts --mode sliding --limit 10 --jitter-ms 80 --port 8080`.
 * `GET /log` with an account's header answers with everything that account sent.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { COUNTING_MODES, type Counter, type CountingMode, makeCounter } from './counting.ts';

export interface EnforcingServerOptions {
  readonly mode: CountingMode;
  /** Requests per second that one account may send to one endpoint. */
  readonly limit: number;
  /** A request is counted up to this many milliseconds after it arrived, evenly spread. Default 0. */
  readonly jitterMs?: number;
  /** The first request of each connection is counted this many milliseconds later still. Default 0. */
  readonly coldSocketMs?: number;
  /** Milliseconds between counting and answering. Default 0. */
  readonly handlerMs?: number;
  /** After so many counted requests of an account, its limit becomes another. */
  readonly limitChange?: { readonly afterRequests: number; readonly limit: number };
  /** Ports to listen on, so that clients need not share connections. 0 picks a free one. Default: one free port. */
  readonly ports?: readonly number[];
}

/** One request as the service saw it. */
export interface LogEntry {
  /** Milliseconds on the service's clock. */
  readonly at: number;
  readonly accepted: boolean;
}

export interface EnforcingServer {
  /** One base URL a port. */
  readonly baseUrls: readonly string[];
  close(): Promise<void>;
}

interface Account {
  readonly counters: Map<string, Counter>;
  readonly log: LogEntry[];
  accepted: number;
}

const TRACKER_BODY = JSON.stringify({
  data: {
    tracker: {
      trackerId: 'tracker-1',
      trackingNumber: 'LA680658838NL',
      isTracked: true,
      isSubscribed: true,
      createdAt: '2026-03-01T11:09:00.000Z',
    },
  },
});
const REFUSAL_BODY = JSON.stringify({ errors: [{ code: 'too_many_requests' }], data: null });

/** Starts the service on the loopback interface of this process. */
export async function startEnforcingServer(options: EnforcingServerOptions): Promise<EnforcingServer> {
  const accounts = new Map<string, Account>();
  const knownSockets = new WeakSet<Socket>();

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const account = accountOf(accounts, request.headers.authorization ?? '');
    request.resume();
    if (request.url === '/log') {
      response.setHeader('content-type', 'application/json').end(JSON.stringify(account.log));
      return;
    }
    const isCold = !knownSockets.has(request.socket);
    knownSockets.add(request.socket);
    const uplinkMs = Math.random() * (options.jitterMs ?? 0) + (isCold ? (options.coldSocketMs ?? 0) : 0);
    if (uplinkMs > 0) await sleep(uplinkMs);
    const counter = counterOf(account, `${request.method} ${request.url}`, options);
    const now = performance.now();
    const accepted = counter.tryCount(now);
    account.log.push({ at: now, accepted });
    if (accepted) account.accepted += 1;
    const { limitChange } = options;
    if (limitChange && account.accepted >= limitChange.afterRequests) counter.limit = limitChange.limit;
    setRateLimitHeaders(response, counter, now, accepted);
    if (accepted && options.handlerMs) await sleep(options.handlerMs);
    response.statusCode = accepted ? 200 : 429;
    response.setHeader('content-type', 'application/json').end(accepted ? TRACKER_BODY : REFUSAL_BODY);
  }

  const servers = await Promise.all(
    (options.ports ?? [0]).map(async (port) => {
      const server = createServer({ keepAliveTimeout: 120_000 }, (request, response) => {
        serve(request, response).catch((error: unknown) =>
          response.destroy(error instanceof Error ? error : undefined),
        );
      });
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject).listen(port, '127.0.0.1', resolve);
      });
      return server;
    }),
  );
  return {
    // Sound: a server that listens on TCP has an address with a port.
    baseUrls: servers.map((server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`),
    close: async () => {
      for (const server of servers) {
        server.closeAllConnections();
        await new Promise((resolve) => server.close(resolve));
      }
    },
  };
}

function accountOf(accounts: Map<string, Account>, name: string): Account {
  const account = accounts.get(name) ?? { counters: new Map(), log: [], accepted: 0 };
  accounts.set(name, account);
  return account;
}

function counterOf(account: Account, endpoint: string, options: EnforcingServerOptions): Counter {
  const counter = account.counters.get(endpoint) ?? makeCounter(options.mode, options.limit);
  account.counters.set(endpoint, counter);
  return counter;
}

/** Both sets of headers of service.md 8, and `Retry-After` on a refusal; delays in whole seconds, rounded up. */
function setRateLimitHeaders(
  response: ServerResponse,
  counter: Counter,
  now: number,
  accepted: boolean,
): void {
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

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      mode: { type: 'string', default: 'sliding' },
      limit: { type: 'string', default: '10' },
      'jitter-ms': { type: 'string', default: '0' },
      'cold-socket-ms': { type: 'string', default: '0' },
      'handler-ms': { type: 'string', default: '0' },
      'limit-change': { type: 'string' },
      port: { type: 'string', multiple: true, default: ['0'] },
    },
  });
  const mode = COUNTING_MODES.find((known) => known === values.mode);
  if (!mode)
    throw new Error(`Expected \`--mode\` to be one of ${COUNTING_MODES.join(', ')}, got ${values.mode}`);
  const [afterRequests, changedLimit] = (values['limit-change'] ?? '').split(':').map(Number);
  const server = await startEnforcingServer({
    mode,
    limit: Number(values.limit),
    jitterMs: Number(values['jitter-ms']),
    coldSocketMs: Number(values['cold-socket-ms']),
    handlerMs: Number(values['handler-ms']),
    ...(afterRequests && changedLimit ? { limitChange: { afterRequests, limit: changedLimit } } : {}),
    ports: values.port.map(Number),
  });
  // A parent that forked us hears it as a message, everybody else reads it.
  if (process.send) process.send({ baseUrls: server.baseUrls });
  else console.log(server.baseUrls.join('\n'));
  process.once('disconnect', () => process.exit());
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) await main();
