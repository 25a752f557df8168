import { sleep } from '../../common/clock.ts';
import { kindOf } from '../../common/messages.ts';
import { type EndpointName, endpoints } from '../../endpoints.ts';
import { type ApiErrorItem, apiErrorItemSchema } from '../../schemas/api-error.ts';
import { MAX_BULK_ITEMS } from '../../schemas/bulk.ts';
import { DEFAULT_PAGE_SIZE, type TrackerRequest, type TrackerUpdateRequest } from '../../schemas/tracker.ts';
import type { RecordedRequest } from '../options.ts';
import { buildResults } from '../shipments/shipment.ts';
import { fail } from './failures.ts';
import {
  checkApiKey,
  type FakeRequest,
  type FakeResponse,
  findRoute,
  hasJsonType,
  jsonOrText,
  type Reply,
  rejection,
  ServiceError,
  toErrorResponse,
  toJsonResponse,
  toTooManyRequests,
} from './http.ts';
import { parseJson, validate, validateAt, validateTrackerInput } from './input.ts';
import type { FakeState } from './state.ts';
import {
  buildTrackerRecord,
  buildTrackingRecord,
  canRespond,
  canRespondAtOnce,
  type TrackerState,
  toHints,
  toPublicCourier,
} from './trackers.ts';

interface Call {
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
  readonly headers: Headers;
  readonly bodyText: string;
}

function succeed(status: number, data: unknown): FakeResponse {
  return toJsonResponse(status, { data });
}

function rejectTracker(what: 'id' | 'tracking number'): ServiceError {
  return rejection(404, 'tracker_not_found', `No tracker has this ${what}.`);
}

function findTracker({ params, query }: Call, state: FakeState): TrackerState {
  const { searchBy } = validate(endpoints['trackers.get'].request.query, query);
  const tracker = state.trackers.find(params['trackerId'], searchBy);
  if (tracker === undefined) throw rejectTracker('id');
  return tracker;
}

type Attempt<T> =
  | { readonly value: T; readonly errors: null }
  | { readonly value?: undefined; readonly errors: readonly ApiErrorItem[] };

/** Runs one step for one bulk item. A failure of this item does not affect the other items. */
function attempt<T>(step: () => T): Attempt<T> {
  try {
    return { value: step(), errors: null };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return { errors: error.errors };
  }
}

function createItem(inputData: unknown, input: Attempt<TrackerRequest>, state: FakeState) {
  const created = input.errors === null ? attempt(() => state.createTracker(input.value)) : input;
  if (created.errors !== null)
    return { itemStatus: 'error', inputData, tracker: null, errors: created.errors };
  const { tracker, isNew } = created.value;
  const itemStatus = isNew ? 'created' : 'existing';
  return { itemStatus, inputData, tracker: buildTrackerRecord(tracker, state.now()), errors: null };
}

/** The service finds the shipment by these fields, so they cannot change once there is data (docs/service.md 3.11). */
const FIXED_FIELDS = ['courierCode', 'originCountryCode', 'destinationCountryCode', 'shippingDate'] as const;

/** Shows the results of trackers. By default, those of a tracker without events are shown, too; their milestone is `pending`. */
function showResults(trackers: readonly TrackerState[], state: FakeState): FakeResponse {
  const { noResults } = state.options;
  const shown =
    noResults === 'pending' ? trackers : trackers.filter(({ shipment }) => shipment.events.length > 0);
  if (shown.length === 0 && noResults === 'parcel_not_found')
    throw rejection(404, 'parcel_not_found', 'There is no data for this shipment yet.');
  return succeed(200, { trackings: shown.map((tracker) => buildTrackingRecord(tracker, state.now())) });
}

const handlers: Readonly<Record<EndpointName, (call: Call, state: FakeState) => FakeResponse>> = {
  'trackers.create': ({ bodyText }, state) => {
    const input = validateTrackerInput(state.now(), parseJson(bodyText));
    const { tracker } = state.createTracker(input);
    return succeed(201, { tracker: buildTrackerRecord(tracker, state.now()) });
  },
  'trackers.list': ({ query }, state) => {
    const toNumber = (text: string) => (/^-?\d+$/.test(text) ? Number(text) : text);
    const numbers = Object.fromEntries(Object.entries(query).map(([field, text]) => [field, toNumber(text)]));
    const {
      page = 1,
      limit = DEFAULT_PAGE_SIZE,
      sort,
    } = validate(endpoints['trackers.list'].request.query, numbers);
    const trackers = state.trackers.all();
    if (sort === -1) trackers.reverse();
    const shown = trackers.slice((page - 1) * limit, page * limit);
    return succeed(200, { trackers: shown.map((tracker) => buildTrackerRecord(tracker, state.now())) });
  },
  'trackers.createBulk': ({ bodyText }, state) => {
    const inputs = parseJson(bodyText);
    const message = `The body must be an array of 1 to ${MAX_BULK_ITEMS} items, got ${kindOf(inputs)}.`;
    if (!Array.isArray(inputs) || inputs.length < 1) throw rejection(400, 'validation_error', message);
    if (inputs.length > MAX_BULK_ITEMS) throw rejection(403, 'bulk_create_limit_exceeded', message);
    const checked = inputs.map((input) => ({
      inputData: input,
      input: attempt(() => validateTrackerInput(state.now(), input)),
    }));
    state.checkQuota(checked.flatMap(({ input }) => input.value ?? []));
    const data = checked.map(({ inputData, input }) => createItem(inputData, input, state));
    const count = (status: string) => data.filter((item) => item.itemStatus === status).length;
    const summary = {
      totalInputs: data.length,
      totalCreated: count('created'),
      totalExisting: count('existing'),
      totalErrors: count('error'),
    };
    const body = { summary, data, error: null };
    if (summary.totalErrors === 0) return toJsonResponse(201, { status: 'success', ...body });
    if (summary.totalErrors < data.length) return toJsonResponse(207, { status: 'partial', ...body });
    const error = { code: 'processing_error', message: 'No item could be processed.' };
    return toJsonResponse(400, { status: 'error', ...body, error });
  },
  'trackers.track': ({ bodyText }, state) => {
    const nowMs = state.now();
    const input = validateTrackerInput(nowMs, parseJson(bodyText));
    const { tracker, isNew } = state.createTracker(input, true);
    const { courierCodes } = state.getParcel(tracker.trackingNumber);
    if (canRespondAtOnce(state.couriers, tracker, courierCodes)) state.fetchResults(tracker, nowMs);
    return succeed(isNew ? 201 : 200, { trackings: [buildTrackingRecord(tracker, nowMs)] });
  },
  'trackers.get': (call, state) =>
    succeed(200, { tracker: buildTrackerRecord(findTracker(call, state), state.now()) }),
  'trackers.update': (call, state) => {
    const tracker = findTracker(call, state);
    const { body } = endpoints['trackers.update'].request;
    const patch = validateAt<TrackerUpdateRequest>(state.now(), body, parseJson(call.bodyText));
    if (tracker.shipment.events.length > 0 && FIXED_FIELDS.some((field) => patch[field] !== undefined)) {
      const message =
        'The tracker has data, so couriers, countries and shipping date cannot change any more.';
      throw rejection(400, 'tracker_not_updatable', message);
    }
    state.updateTracker(tracker, patch);
    return succeed(200, { tracker: buildTrackerRecord(tracker, state.now()) });
  },
  'trackers.results': (call, state) => showResults([findTracker(call, state)], state),
  'trackers.resultsByTrackingNumber': ({ params }, state) => {
    const rules = endpoints['trackers.resultsByTrackingNumber'].request.params;
    const { trackingNumber } = validate(rules, params);
    const trackers = state.trackers.findByTrackingNumber(trackingNumber.toUpperCase());
    if (trackers.length === 0 && state.options.noResults !== 'empty') throw rejectTracker('tracking number');
    return showResults(trackers, state);
  },
  'trackers.resendWebhookEvents': (call, state) => {
    const { trackerId } = findTracker(call, state);
    if (!state.options.webhooks)
      throw rejection(400, 'webhook_url_missing', 'No webhook URL is registered for the account.');
    return succeed(201, { summary: { totalResent: state.resend(trackerId) } });
  },
  'trackers.webhookHistory': (call, state) => {
    const { trackerId, trackingNumber, clientTrackerId } = findTracker(call, state);
    const pushes = state.webhooks.history.filter((push) => push.trackerId === trackerId);
    // Several pushes can share an attempt, and the set keeps it once. `reverse` puts the newest first if times are equal.
    const attempts = [...new Set(pushes.flatMap((push) => push.attempts))].reverse();
    attempts.sort((a, b) => Date.parse(b.sentAt) - Date.parse(a.sentAt));
    const metadata = {
      trackingNumber,
      trackerId,
      clientTrackerId,
      webhookUrl: attempts[0]?.url ?? null,
      lastSuccessfulPushAt: attempts.find(({ succeeded }) => succeeded)?.sentAt ?? null,
      lastFailedPushAt: attempts.find(({ succeeded }) => !succeeded)?.sentAt ?? null,
    };
    const webhooks = attempts.map(({ succeeded, sentAt, status, url: _url, ...rest }) => ({
      ...rest,
      status: succeeded ? 'success' : 'failed',
      pushTimestamp: sentAt,
      responseStatusCode: status === null ? null : String(status),
    }));
    const day = new Date(state.now()).toISOString().slice(0, 10).replaceAll('-', '');
    const filename = `webhook-history-${trackingNumber}-${day}.json`;
    const headers = {
      'content-disposition': `attachment; filename="${filename}"`,
      // Lets a web page read the name of the file.
      'access-control-expose-headers': 'Content-Disposition',
    };
    return toJsonResponse(200, { metadata, webhooks }, headers);
  },
  'tracking.search': ({ bodyText }, state) => {
    const input = validateAt(state.now(), endpoints['tracking.search'].request.body, parseJson(bodyText));
    const { perCall } = state.options.plans;
    if (perCall && state.searches >= perCall.quota)
      throw rejection(403, 'quota_limit_reached', 'The per-call quota is used up.');
    state.searches += 1;
    const hints = toHints(input);
    const { couriers } = state;
    const parcel = state.askCouriers(input.trackingNumber);
    const isKnown = canRespond(couriers, hints) && canRespondAtOnce(couriers, hints, parcel.courierCodes);
    const events = isKnown ? parcel.showEvents(parcel.events, hints.courierCodes) : [];
    return succeed(201, { trackings: [buildResults(parcel, hints, events)] });
  },
  // Works without the per-shipment plan, too: clients of both plans need the courier codes.
  'couriers.list': (_call, state) => succeed(200, { couriers: state.couriers.map(toPublicCourier) }),
};

type LogEntry = { -readonly [Field in keyof RecordedRequest]: RecordedRequest[Field] };

function checkPlan({ plans }: FakeState['options'], endpoint: EndpointName): void {
  if (endpoint === 'couriers.list') return;
  const isPerCall = endpoint === 'tracking.search';
  if (isPerCall ? plans.perCall : plans.perShipment) return;
  const message = `The account has no active ${isPerCall ? 'per-call' : 'per-shipment'} subscription.`;
  throw rejection(422, 'no_active_subscription', message);
}

function carryOut(state: FakeState, endpoint: EndpointName, call: Call): FakeResponse {
  let limitHeaders: FakeResponse['headers'] = {};
  try {
    checkApiKey(call.headers, state.options.apiKeys);
    const permit = state.limits?.take(endpoint, state.now());
    limitHeaders = permit?.headers ?? {};
    if (permit?.allowed === false) return toTooManyRequests(limitHeaders);
    checkPlan(state.options, endpoint);
    if ('body' in endpoints[endpoint].request && !hasJsonType(call.headers))
      throw rejection(400, 'parsing_error', 'The Content-Type must be application/json.');
    const response = handlers[endpoint](call, state);
    return { ...response, headers: { ...response.headers, ...limitHeaders } };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return toErrorResponse(endpoint, error, limitHeaders);
  }
}

function rejectPath(allowedMethods: readonly string[]): FakeResponse {
  const allow = allowedMethods.join(', ');
  if (allow === '')
    return toErrorResponse(undefined, rejection(404, 'path_not_found', 'There is no endpoint at this path.'));
  const error = rejection(405, 'method_not_allowed', `This path accepts ${allow}.`);
  return toErrorResponse(undefined, error, { allow });
}

function decide(state: FakeState, request: FakeRequest, entry: LogEntry): Reply {
  const { endpoint, params, allowedMethods } = findRoute(request.method, entry.path, request.basePath);
  if (endpoint === undefined) return { kind: 'response', response: rejectPath(allowedMethods) };
  entry.endpoint = endpoint;
  const call = { params, query: entry.query, headers: request.headers, bodyText: request.body };
  const run = () => carryOut(state, endpoint, call);
  const failure = state.failures.take(endpoint);
  if (failure === undefined) return { kind: 'response', response: run() };
  entry.failure = 'kind' in failure ? failure.kind : undefined;
  return fail(failure, { endpoint, limit: state.limits?.getLimit(endpoint), nowMs: state.now() }, run);
}

function findFirstError({ status, body }: FakeResponse): ApiErrorItem | undefined {
  if (status < 400) return undefined;
  const { errors, error } = Object(jsonOrText(body));
  return apiErrorItemSchema.safeParse(Array.isArray(errors) ? errors[0] : error).data;
}

export async function serve(state: FakeState, request: FakeRequest): Promise<Reply> {
  // With the prefix, a target such as `//x` stays a path. If it were resolved against a base URL, `x` would become the host.
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
  const reply = decide(state, request, entry);
  const latencyMs = entry.endpoint === undefined ? 0 : state.options.latencyMs(entry.endpoint);
  if (latencyMs > 0) await sleep(latencyMs);
  if ('response' in reply) {
    entry.status = reply.response.status;
    entry.error = findFirstError(reply.response);
  }
  state.options.onRequest?.(entry);
  if (!('response' in reply)) return reply;
  const { response } = reply;
  const date = new Date(state.now()).toUTCString();
  const allHeaders = { date, 'x-request-id': entry.requestId, ...response.headers };
  return { ...reply, response: { ...response, headers: allHeaders } };
}
