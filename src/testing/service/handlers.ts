// Specification: service.md 1, 2.1 to 2.4, 4, 6; public contract, "Requests", "Bulk envelope"
import { kindOf } from '../../common/validation.ts';
import { type EndpointName, endpoints } from '../../endpoints.ts';
import { type BulkItem, MAX_BULK_ITEMS } from '../../schemas/bulk.ts';
import type { TrackerUpdateRequest } from '../../schemas/tracker.ts';
import { resultsView } from '../shipments/shipment.ts';
import { canRespond, canRespondAtOnce, publicCourier } from './couriers.ts';
import { rejection, ServiceError } from './http.ts';
import { dayOf, parseJson, validated, validatedAt, validatedTrackerInput } from './input.ts';
import type { FakeState } from './state.ts';
import { countryOf, courierList, type TrackerState, trackerView, trackingView } from './trackers.ts';

/** A request that reached its endpoint, not yet checked against the endpoint's rules. */
interface Call {
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
  readonly bodyText: string;
}

/** What an endpoint responds; the body is sent as JSON. */
interface HandlerResult {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Carries a request out; a rejected one is thrown as `ServiceError`. */
type Handler = (call: Call, state: FakeState) => HandlerResult;

/** The envelope of every success but the bulk one. */
function success(status: number, data: unknown): HandlerResult {
  return { status, body: { data } };
}

/** The tracker that a path addresses. */
function addressedTracker({ params, query }: Call, state: FakeState): TrackerState {
  const { searchBy } = validated(endpoints['trackers.get'].request.query, query);
  return state.trackers.get(params['trackerId'] ?? '', searchBy);
}

/** 201 for a new tracker and, unless an option says otherwise, for one that is reused. */
const createTracker: Handler = ({ bodyText }, state) => {
  const input = validatedTrackerInput(state.now(), parseJson(bodyText));
  const { tracker, isNew } = state.createTracker(input, 'trackers.create');
  return success(isNew ? 201 : (state.options.existingStatus ?? 201), {
    tracker: trackerView(tracker, state.now()),
  });
};

/** Oldest first unless `sort` is -1; `page` and `limit` are required. */
const listTrackers: Handler = ({ query }, state) => {
  for (const field of ['page', 'limit'])
    if (query[field] === undefined)
      throw rejection(400, 'missing_mandatory_field', `\`${field}\` is missing.`);
  // Text that is a whole number becomes one; anything else stays, for the schema to reject.
  const toNumber = (text: string) => (/^-?\d+$/.test(text) ? Number(text) : text);
  const numbers = Object.fromEntries(Object.entries(query).map(([field, text]) => [field, toNumber(text)]));
  const { page, limit, sort } = validated(endpoints['trackers.list'].request.query, numbers);
  const trackers = state.trackers.all();
  if (sort === -1) trackers.reverse();
  const shown = trackers.slice((page - 1) * limit, page * limit);
  return success(200, { trackers: shown.map((tracker) => trackerView(tracker, state.now())) });
};

/** Rejects a request that creates more trackers than the plan has left, as a whole. */
function checkBulkQuota(state: FakeState, inputs: readonly unknown[]): void {
  const { quota, bulkCreateLimit } = state.options.plans.perShipment;
  // Counting looks at every item, so it is left where nothing is limited.
  if (quota === Infinity && bulkCreateLimit === Infinity) return;
  const total = state.countNew(inputs);
  if (state.bulkCreated + total > bulkCreateLimit)
    throw rejection(403, 'bulk_create_limit_exceeded', 'The plan creates fewer trackers in bulk.');
  if (state.trackers.size + total > quota)
    throw rejection(403, 'quota_limit_reached', 'The items are more than what is left of the quota.');
}

/** The input comes back as it was sent, whatever it is. */
type CreatedItem = Omit<BulkItem, 'inputData'> & { readonly inputData: unknown };

function createItem(inputData: unknown, state: FakeState): CreatedItem {
  try {
    const input = validatedTrackerInput(state.now(), inputData);
    const { tracker, isNew } = state.createTracker(input, 'trackers.createBulk');
    const itemStatus = isNew ? 'created' : 'existing';
    return { itemStatus, inputData, tracker: trackerView(tracker, state.now()), errors: null };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return { itemStatus: 'error', inputData, tracker: null, errors: [...error.errors] };
  }
}

/** 201, 207 or 400 by what became of the items. */
const createBulk: Handler = ({ bodyText }, state) => {
  const inputs = parseJson(bodyText);
  if (!Array.isArray(inputs) || inputs.length < 1 || inputs.length > MAX_BULK_ITEMS) {
    const message = `The body must be an array of 1 to ${MAX_BULK_ITEMS} items, got ${kindOf(inputs)}.`;
    throw rejection(400, 'validation_error', message);
  }
  checkBulkQuota(state, inputs);
  const data = inputs.map((input) => createItem(input, state));
  const count = (status: string) => data.filter((item) => item.itemStatus === status).length;
  const summary = {
    totalInputs: data.length,
    totalCreated: count('created'),
    totalExisting: count('existing'),
    totalErrors: count('error'),
  };
  state.bulkCreated += summary.totalCreated;
  if (summary.totalErrors === 0)
    return { status: 201, body: { status: 'success', summary, data, error: null } };
  if (summary.totalErrors < data.length)
    return { status: 207, body: { status: 'partial', summary, data, error: null } };
  const error = { code: 'processing_error', message: 'No item could be processed.' };
  return { status: 400, body: { status: 'error', summary, data, error } };
};

/** Asks the couriers at once, where they can be asked so. */
const track: Handler = ({ bodyText }, state) => {
  const nowMs = state.now();
  const input = validatedTrackerInput(nowMs, parseJson(bodyText));
  const { tracker, isNew } = state.createTracker(input, 'trackers.track');
  const known = state.number(tracker.trackingNumber).courierCodes;
  const asked = tracker.courierCodes.length > 0 ? tracker.courierCodes : known;
  if (canRespondAtOnce(state.couriers, asked)) state.fetchResults(tracker, nowMs);
  return success(isNew ? 201 : (state.options.existingStatus ?? 200), {
    trackings: [trackingView(tracker, nowMs)],
  });
};

const getTracker: Handler = (call, state) =>
  success(200, { tracker: trackerView(addressedTracker(call, state), state.now()) });

/** The changes of a patch in the form they are kept. */
function toChanges(patch: TrackerUpdateRequest): Partial<TrackerState> {
  const { isSubscribed, courierCode, originCountryCode, destinationCountryCode, destinationPostCode } = patch;
  return {
    ...(isSubscribed !== undefined && { isSubscribed }),
    ...(courierCode !== undefined && { courierCodes: courierList(courierCode) }),
    ...(originCountryCode !== undefined && { originCountryCode: countryOf(originCountryCode) }),
    ...(destinationCountryCode !== undefined && {
      destinationCountryCode: countryOf(destinationCountryCode),
    }),
    ...(destinationPostCode !== undefined && { destinationPostCode }),
    ...(patch.shippingDate !== undefined && { shippingDay: dayOf(patch.shippingDate) }),
  };
}

/** What the service found the shipment by, so it is fixed once data was gathered. */
const FIXED_FIELDS = ['courierCodes', 'originCountryCode', 'destinationCountryCode', 'shippingDay'];

/** Some fields are fixed once data was gathered. */
const updateTracker: Handler = (call, state) => {
  const tracker = addressedTracker(call, state);
  const { body } = endpoints['trackers.update'].request;
  const changes = toChanges(validatedAt(state.now(), body, parseJson(call.bodyText)));
  const fields = Object.keys(changes);
  if (fields.length === 0) throw rejection(400, 'validation_error', 'No field can be updated by that name.');
  if (hasResults(tracker) && fields.some((field) => FIXED_FIELDS.includes(field))) {
    const message = 'Data was gathered for this tracker; courier, countries and shipping date are fixed.';
    throw rejection(400, 'tracker_not_updatable', message);
  }
  state.updateTracker(tracker, changes);
  return success(200, { tracker: trackerView(tracker, state.now()) });
};

/** True once there are data; a tracker that was given up without any never has results. */
function hasResults(tracker: TrackerState): boolean {
  return tracker.shipment.events.length > 0;
}

/** The full history, or that there is none yet. */
const results: Handler = (call, state) => {
  const tracker = addressedTracker(call, state);
  if (hasResults(tracker)) return success(200, { trackings: [trackingView(tracker, state.now())] });
  if (state.options.noResults === 'empty') return success(200, { trackings: [] });
  throw rejection(404, 'parcel_not_found', 'There are no data on this shipment yet.');
};

/** Every tracker of the number that has results. */
const resultsByTrackingNumber: Handler = ({ params }, state) => {
  const { trackingNumber } = validated(endpoints['trackers.resultsByTrackingNumber'].request.params, params);
  const ready = state.trackers.withTrackingNumber(trackingNumber.toUpperCase()).filter(hasResults);
  return success(200, { trackings: ready.map((tracker) => trackingView(tracker, state.now())) });
};

/** Queues what was pushed before. */
const resendWebhookEvents: Handler = (call, state) => {
  const { trackerId } = addressedTracker(call, state);
  if (!state.options.webhooks)
    throw rejection(400, 'webhook_url_missing', 'No webhook URL is registered for the account.');
  return success(201, { summary: { totalResent: state.resend(trackerId) } });
};

/** Every try at sending a webhook of a tracker, newest first, as a file. */
const webhookHistory: Handler = (call, state) => {
  const { trackerId, trackingNumber, clientTrackerId } = addressedTracker(call, state);
  const pushes = state.webhooks.history.filter((push) => push.trackerId === trackerId);
  // A set, because pushes of one request share their attempts. Sorting is stable, so the later of two is first.
  const attempts = [...new Set(pushes.flatMap((push) => push.attempts))].reverse();
  attempts.sort((one, other) => Date.parse(other.sentAt) - Date.parse(one.sentAt));
  const lastPushAt = (succeeded: boolean) =>
    attempts.find((attempt) => attempt.succeeded === succeeded)?.sentAt ?? null;
  const metadata = {
    trackingNumber,
    trackerId,
    clientTrackerId,
    webhookUrl: attempts[0]?.url ?? null,
    lastSuccessfulPushAt: lastPushAt(true),
    lastFailedPushAt: lastPushAt(false),
  };
  const webhooks = attempts.map((attempt) => ({
    status: attempt.succeeded ? 'success' : 'failed',
    pushTimestamp: attempt.sentAt,
    requestBody: attempt.requestBody,
    responseBody: attempt.responseBody,
    responseHeaders: attempt.responseHeaders,
    responseStatusCode: attempt.status === null ? null : String(attempt.status),
  }));
  const day = new Date(state.now()).toISOString().slice(0, 10).replaceAll('-', '');
  const filename = `webhook-history-${trackingNumber}-${day}.json`;
  return {
    status: 200,
    body: { metadata, webhooks },
    headers: { 'content-disposition': `attachment; filename="${filename}"` },
  };
};

/** No tracker, no webhook, one call of the quota. */
const search: Handler = ({ bodyText }, state) => {
  const input = validatedAt(state.now(), endpoints['tracking.search'].request.body, parseJson(bodyText));
  if (state.searches >= state.options.plans.perCall.quota)
    throw rejection(403, 'quota_limit_reached', 'The per-call quota is used up.');
  state.searches += 1;
  const hints = {
    courierCodes: courierList(input.courierCode),
    originCountryCode: countryOf(input.originCountryCode),
    destinationCountryCode: countryOf(input.destinationCountryCode),
    destinationPostCode: input.destinationPostCode ?? null,
  };
  const number = state.askedNumber(input.trackingNumber);
  const asked = hints.courierCodes.length > 0 ? hints.courierCodes : number.courierCodes;
  const hasResponse = canRespond(state.couriers, hints) && canRespondAtOnce(state.couriers, asked);
  return success(201, { trackings: [resultsView(number, hints, hasResponse ? number.events : [])] });
};

/** On every plan: service.md 1 names it for none, and a client needs it for either. */
const listCouriers: Handler = (_call, state) => success(200, { couriers: state.couriers.map(publicCourier) });

/** One handler for every row of the endpoint table; a row without one does not compile. */
export const handlers = {
  'trackers.create': createTracker,
  'trackers.list': listTrackers,
  'trackers.createBulk': createBulk,
  'trackers.track': track,
  'trackers.get': getTracker,
  'trackers.update': updateTracker,
  'trackers.resultsByTrackingNumber': resultsByTrackingNumber,
  'trackers.results': results,
  'trackers.resendWebhookEvents': resendWebhookEvents,
  'trackers.webhookHistory': webhookHistory,
  'tracking.search': search,
  'couriers.list': listCouriers,
} satisfies { [Name in EndpointName]: Handler };
