import { sleep } from '../../common/timing.ts';
import type { EndpointName } from '../../endpoints.ts';
import { handlers } from '../handlers/handlers.ts';
import type { World } from '../world.ts';
import { authenticate } from './authentication.ts';
import { cutOffReply, type Failure, failureReply, htmlReply, tooManyRequests } from './failures.ts';
import { errorReply, jsonReply, type Reply, ServiceError } from './replies.ts';
import { headersWithoutKey, type RecordedRequest, readableBody } from './request-log.ts';
import { findRoute, type Route } from './routes.ts';
import type { FakeState } from './state.ts';

/** A request of any transport. */
export interface RawRequest {
  /** HTTP method. */
  readonly method: string;
  /** Path and query, percent-encoded. */
  readonly target: string;
  /** All headers, the key's included. */
  readonly headers: Headers;
  /** Text of the body; empty when there is none. */
  readonly body: string;
  /** Path of the base URL; when left out, it ends with the version segment. */
  readonly basePath?: string | undefined;
}

/** What the transport has to do. */
export type Outcome =
  | {
      /** Answer. */
      readonly kind: 'answer';
      /** What to send. */
      readonly reply: Reply;
    }
  | {
      /** Break the connection. */
      readonly kind: 'reset';
    }
  | {
      /** Never answer. */
      readonly kind: 'silence';
    }
  | {
      /** Send the headers and half of the body, then nothing. */
      readonly kind: 'stall';
      /** What to send half of. */
      readonly reply: Reply;
    };

/** A log entry that learns its status when the answer is ready. */
type OpenEntry = { -readonly [Field in keyof RecordedRequest]: RecordedRequest[Field] };

function isBulk(endpoint: EndpointName | undefined): boolean {
  return endpoint === 'trackers.createBulk';
}

/** The refusal of a request that no endpoint of the table takes. */
function noRouteReply(allowedMethods: readonly string[]): Reply {
  if (allowedMethods.length === 0)
    return errorReply(false, 404, [{ code: 'path_not_found', message: 'Nothing answers at this path.' }]);
  const allow = allowedMethods.join(', ');
  const reply = errorReply(false, 405, [{ code: 'method_not_allowed', message: `Use ${allow} here.` }]);
  return { ...reply, headers: { ...reply.headers, allow } };
}

function checkPlan(world: World, endpoint: EndpointName): void {
  if (endpoint === 'couriers.list') return;
  const isPerCall = endpoint === 'tracking.search';
  const { hasPerCallPlan, hasPerShipmentPlan } = world.options;
  if (isPerCall ? hasPerCallPlan : hasPerShipmentPlan) return;
  throw new ServiceError(isPerCall ? 422 : 403, {
    code: 'no_active_subscription',
    message: `There is no active ${isPerCall ? 'per-call' : 'per-shipment'} subscription.`,
  });
}

/** Runs one request through authentication, limits, plan and handler. */
function carryOut(world: World, raw: RawRequest, { endpoint, params }: Route, query: URLSearchParams): Reply {
  let limitHeaders: Reply['headers'] = {};
  try {
    authenticate(raw.headers.get('authorization') ?? undefined, world.options.apiKeys);
    const allowance = world.limits?.take(endpoint, world.now());
    limitHeaders = allowance?.headers ?? {};
    if (allowance?.allowed === false) return tooManyRequests(limitHeaders);
    checkPlan(world, endpoint);
    const call = { params, query: Object.fromEntries(query), bodyText: raw.body };
    const { status, body, headers } = handlers[endpoint](call, world);
    return jsonReply(status, body, { ...limitHeaders, ...headers });
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const reply = errorReply(isBulk(endpoint), error.status, error.errors);
    return { ...reply, headers: { ...limitHeaders, ...reply.headers } };
  }
}

function fail(failure: Failure, world: World, endpoint: EndpointName | undefined, run: () => Reply): Outcome {
  if (!('kind' in failure)) {
    const limit = endpoint === undefined ? undefined : world.limits?.limitOf(endpoint);
    const reply = failureReply(failure, { isBulk: isBulk(endpoint), limit, nowMs: world.now() });
    return { kind: 'answer', reply };
  }
  switch (failure.kind) {
    case 'reset':
      return { kind: 'reset' };
    case 'timeout':
      return { kind: 'silence' };
    case 'stall':
      return { kind: 'stall', reply: run() };
    case 'badJson':
      return { kind: 'answer', reply: cutOffReply(failure.status) };
    case 'html':
      return { kind: 'answer', reply: htmlReply(failure.status) };
    case 'commitThenDrop':
      run();
      return { kind: 'reset' };
  }
}

/**
 * Answers one request: this is the fake service, without a transport.
 *
 * @param state - the fake's world, log and planned failures; the request changes all three
 */
export async function serve(state: FakeState, raw: RawRequest): Promise<Outcome> {
  const { world } = state;
  // Joined, not resolved: a target that starts with `//` must stay a path.
  const url = new URL(raw.target.startsWith('/') ? `http://fake${raw.target}` : 'http://fake/');
  const entry: OpenEntry = {
    endpoint: undefined,
    method: raw.method,
    path: url.pathname,
    query: Object.fromEntries(url.searchParams),
    body: readableBody(raw.body),
    headers: headersWithoutKey(raw.headers),
    receivedAtMs: world.now(),
    requestId: world.ids.next('request'),
    status: null,
    failure: undefined,
  };
  state.requests.add(entry);
  const outcome = outcomeOf(state, raw, url, entry);
  const { endpoint } = entry;
  const latencyMs = endpoint === undefined ? 0 : world.options.latencyMs(endpoint);
  if (latencyMs > 0) await sleep(latencyMs);
  if ('reply' in outcome) entry.status = outcome.reply.status;
  world.options.onRequest(entry);
  if (!('reply' in outcome)) return outcome;
  const headers = { date: new Date(world.now()).toUTCString(), 'x-request-id': entry.requestId };
  return { ...outcome, reply: { ...outcome.reply, headers: { ...headers, ...outcome.reply.headers } } };
}

function outcomeOf(state: FakeState, raw: RawRequest, url: URL, entry: OpenEntry): Outcome {
  const { world } = state;
  try {
    const found = findRoute(raw.method, url.pathname, raw.basePath);
    if (!('endpoint' in found)) return { kind: 'answer', reply: noRouteReply(found.allowedMethods) };
    entry.endpoint = found.endpoint;
    const run = () => carryOut(world, raw, found, url.searchParams);
    const failure = state.failures.take(found.endpoint);
    if (failure === undefined) return { kind: 'answer', reply: run() };
    entry.failure = 'kind' in failure ? failure.kind : undefined;
    return fail(failure, world, found.endpoint, run);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return { kind: 'answer', reply: errorReply(false, error.status, error.errors) };
  }
}
