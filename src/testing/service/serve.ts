// Specification: service.md 4, 5, 7, 8; public contract, "Base URL and authentication", "Errors"
import { sleep } from '../../common/abort.ts';
import { type EndpointName, endpoints } from '../../endpoints.ts';
import { type ApiErrorItem, apiErrorItemSchema } from '../../schemas/api-error.ts';
import type { RecordedRequest } from '../options.ts';
import { failedOutcome } from './failures.ts';
import { type Call, handlers } from './handlers.ts';
import {
  errorReply,
  findRoute,
  jsonOrText,
  jsonReply,
  type Outcome,
  type RawRequest,
  type Reply,
  rejection,
  ServiceError,
} from './http.ts';
import { tooManyRequests } from './rate-limits.ts';
import type { FakeState } from './state.ts';

/** A log entry that learns its status when the response is ready. */
type OpenEntry = { -readonly [Field in keyof RecordedRequest]: RecordedRequest[Field] };

function noRouteReply(allowedMethods: readonly string[]): Reply {
  if (allowedMethods.length === 0)
    return errorReply(undefined, rejection(404, 'path_not_found', 'Nothing answers at this path.'));
  const allow = allowedMethods.join(', ');
  const reply = errorReply(undefined, rejection(405, 'method_not_allowed', `Use ${allow} here.`));
  return { ...reply, headers: { ...reply.headers, allow } };
}

function checkKey(header: string | null, apiKeys: readonly string[] | undefined): void {
  if (header === null || header.trim() === '')
    throw rejection(400, 'auth_missing_header', 'The Authorization header is missing.');
  const key = /^Bearer +(\S+)$/i.exec(header.trim())?.[1];
  if (key === undefined)
    throw rejection(400, 'auth_invalid_header', 'The Authorization header must read: Bearer <API key>.');
  if (apiKeys?.includes(key) === false)
    throw rejection(401, 'auth_invalid_api_key', 'The API key is not known.');
}

function checkPlan({ plans }: FakeState['options'], endpoint: EndpointName): void {
  if (endpoint === 'couriers.list') return;
  const isPerCall = endpoint === 'tracking.search';
  if ((isPerCall ? plans.perCall : plans.perShipment).isOn) return;
  const message = `There is no active ${isPerCall ? 'per-call' : 'per-shipment'} subscription.`;
  throw rejection(422, 'no_active_subscription', message);
}

function carryOut(state: FakeState, raw: RawRequest, endpoint: EndpointName, call: Call): Reply {
  let limitHeaders: Reply['headers'] = {};
  try {
    checkKey(raw.headers.get('authorization'), state.options.apiKeys);
    const allowance = state.limits?.take(endpoint, state.now());
    limitHeaders = allowance?.headers ?? {};
    if (allowance?.allowed === false) return tooManyRequests(limitHeaders);
    checkPlan(state.options, endpoint);
    const isJson = /^application\/json\b/i.test(raw.headers.get('content-type') ?? '');
    if ('body' in endpoints[endpoint].request && !isJson)
      throw rejection(400, 'parsing_error', 'The Content-Type must be application/json.');
    const { status, body, headers } = handlers[endpoint](call, state);
    return jsonReply(status, body, { ...limitHeaders, ...headers });
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const reply = errorReply(endpoint, error);
    return { ...reply, headers: { ...limitHeaders, ...reply.headers } };
  }
}

function outcomeOf(state: FakeState, raw: RawRequest, pathname: string, entry: OpenEntry): Outcome {
  try {
    const { endpoint, params, allowedMethods } = findRoute(raw.method, pathname, raw.basePath);
    if (endpoint === undefined) return { kind: 'answer', reply: noRouteReply(allowedMethods) };
    entry.endpoint = endpoint;
    const run = () => carryOut(state, raw, endpoint, { params, query: entry.query, bodyText: raw.body });
    const failure = state.failures.take(endpoint);
    if (failure === undefined) return { kind: 'answer', reply: run() };
    entry.failure = 'kind' in failure ? failure.kind : undefined;
    return failedOutcome(failure, endpoint, state, run);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return { kind: 'answer', reply: errorReply(undefined, error) };
  }
}

function firstErrorIn({ status, body }: Reply): ApiErrorItem | undefined {
  if (status < 400) return undefined;
  const { errors, error } = Object(jsonOrText(body));
  return apiErrorItemSchema.safeParse(Array.isArray(errors) ? errors[0] : error).data;
}

/** Responds to one request: this is the fake service, without a transport. */
export async function serve(state: FakeState, raw: RawRequest): Promise<Outcome> {
  // Joined, not resolved: a target that starts with `//` must stay a path.
  const url = new URL(raw.target.startsWith('/') ? `http://fake${raw.target}` : 'http://fake/');
  const { authorization: _key, ...headers } = Object.fromEntries(raw.headers);
  const entry: OpenEntry = {
    endpoint: undefined,
    method: raw.method,
    path: url.pathname,
    query: Object.fromEntries(url.searchParams),
    body: raw.body === '' ? undefined : jsonOrText(raw.body),
    headers,
    receivedAtMs: state.now(),
    requestId: state.ids.next('request'),
    status: null,
    failure: undefined,
    error: undefined,
  };
  state.requests.push(entry);
  if (state.requests.length > state.options.historyLimit) state.requests.shift();
  const outcome = outcomeOf(state, raw, url.pathname, entry);
  const latencyMs = entry.endpoint === undefined ? 0 : state.options.latencyMs(entry.endpoint);
  if (latencyMs > 0) await sleep(latencyMs);
  if ('reply' in outcome) {
    entry.status = outcome.reply.status;
    entry.error = firstErrorIn(outcome.reply);
  }
  state.options.onRequest?.(entry);
  if (!('reply' in outcome)) return outcome;
  const { reply } = outcome;
  const date = new Date(state.now()).toUTCString();
  return {
    ...outcome,
    reply: { ...reply, headers: { date, 'x-request-id': entry.requestId, ...reply.headers } },
  };
}
