import { sleep } from '../../common/abort.ts';
import { type EndpointName, endpoints } from '../../endpoints.ts';
import { type ApiErrorItem, apiErrorItemSchema } from '../../schemas/api-error.ts';
import type { RecordedRequest } from '../options.ts';
import { fail } from './failures.ts';
import { handlers } from './handlers.ts';
import {
  checkApiKey,
  type FakeRequest,
  type FakeResponse,
  findRoute,
  hasJsonType,
  jsonOrText,
  type Outcome,
  rejection,
  ServiceError,
  toErrorResponse,
  toJsonResponse,
  toTooManyRequests,
} from './http.ts';
import type { FakeState } from './state.ts';

/** A request in the log; its status is filled in when the response is ready. */
type LogEntry = { -readonly [Field in keyof RecordedRequest]: RecordedRequest[Field] };

function checkPlan({ plans }: FakeState['options'], endpoint: EndpointName): void {
  if (endpoint === 'couriers.list') return;
  const isPerCall = endpoint === 'tracking.search';
  if ((isPerCall ? plans.perCall : plans.perShipment).isOn) return;
  const message = `There is no active ${isPerCall ? 'per-call' : 'per-shipment'} subscription.`;
  throw rejection(422, 'no_active_subscription', message);
}

/** Carries out a request that no injected failure stops: key, limit, plan, content type, then the endpoint. */
function carryOut(
  state: FakeState,
  request: FakeRequest,
  { query }: LogEntry,
  endpoint: EndpointName,
  params: Readonly<Record<string, string>>,
): FakeResponse {
  let limitHeaders: FakeResponse['headers'] = {};
  try {
    checkApiKey(request.headers, state.options.apiKeys);
    const permit = state.limits?.take(endpoint, state.now());
    limitHeaders = permit?.headers ?? {};
    if (permit?.allowed === false) return toTooManyRequests(limitHeaders);
    checkPlan(state.options, endpoint);
    if ('body' in endpoints[endpoint].request && !hasJsonType(request.headers))
      throw rejection(400, 'parsing_error', 'The Content-Type must be application/json.');
    const { status, body, headers } = handlers[endpoint]({ params, query, bodyText: request.body }, state);
    return toJsonResponse(status, body, { ...limitHeaders, ...headers });
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const response = toErrorResponse(endpoint, error);
    return { ...response, headers: { ...limitHeaders, ...response.headers } };
  }
}

function rejectPath(allowedMethods: readonly string[]): FakeResponse {
  if (allowedMethods.length === 0)
    return toErrorResponse(undefined, rejection(404, 'path_not_found', 'There is no endpoint at this path.'));
  const allow = allowedMethods.join(', ');
  const response = toErrorResponse(undefined, rejection(405, 'method_not_allowed', `Use ${allow} here.`));
  return { ...response, headers: { ...response.headers, allow } };
}

function decide(state: FakeState, request: FakeRequest, entry: LogEntry): Outcome {
  try {
    const { endpoint, params, allowedMethods } = findRoute(request.method, entry.path, request.basePath);
    if (endpoint === undefined) return { kind: 'response', response: rejectPath(allowedMethods) };
    entry.endpoint = endpoint;
    const run = () => carryOut(state, request, entry, endpoint, params);
    const failure = state.failures.take(endpoint);
    if (failure === undefined) return { kind: 'response', response: run() };
    entry.failure = 'kind' in failure ? failure.kind : undefined;
    return fail(failure, endpoint, state, run);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return { kind: 'response', response: toErrorResponse(undefined, error) };
  }
}

function findFirstError({ status, body }: FakeResponse): ApiErrorItem | undefined {
  if (status < 400) return undefined;
  const { errors, error } = Object(jsonOrText(body));
  return apiErrorItemSchema.safeParse(Array.isArray(errors) ? errors[0] : error).data;
}

/** Responds to one request: this is the fake service without a transport. */
export async function serve(state: FakeState, request: FakeRequest): Promise<Outcome> {
  // A prefix keeps a target that starts with `//` a path; resolving it would make it a host.
  const url = new URL(request.target.startsWith('/') ? `http://fake${request.target}` : 'http://fake/');
  const { authorization: _key, ...headers } = Object.fromEntries(request.headers);
  const entry: LogEntry = {
    endpoint: undefined,
    method: request.method,
    path: url.pathname,
    query: Object.fromEntries(url.searchParams),
    body: request.body === '' ? undefined : jsonOrText(request.body),
    headers,
    receivedAtMs: state.now(),
    requestId: state.ids.next('request'),
    status: null,
    failure: undefined,
    error: undefined,
  };
  state.requests.push(entry);
  if (state.requests.length > state.options.historyLimit) state.requests.shift();
  const outcome = decide(state, request, entry);
  const latencyMs = entry.endpoint === undefined ? 0 : state.options.latencyMs(entry.endpoint);
  if (latencyMs > 0) await sleep(latencyMs);
  if ('response' in outcome) {
    entry.status = outcome.response.status;
    entry.error = findFirstError(outcome.response);
  }
  state.options.onRequest?.(entry);
  if (!('response' in outcome)) return outcome;
  const { response } = outcome;
  const date = new Date(state.now()).toUTCString();
  const allHeaders = { date, 'x-request-id': entry.requestId, ...response.headers };
  return { ...outcome, response: { ...response, headers: allHeaders } };
}
