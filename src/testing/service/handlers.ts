// Specification: service.md 1, 2.1 to 2.4, 4, 6; public contract, "Requests", "Bulk envelope"
import { kindOf } from '../../common/validation.ts';
import { type EndpointName, endpoints } from '../../endpoints.ts';
import { MAX_BULK_ITEMS } from '../../schemas/bulk.ts';
import type { TrackerUpdateRequest } from '../../schemas/tracker.ts';
import { resultsView } from '../shipments/shipment.ts';
import { canRespond, canRespondAtOnce, publicCourier } from './couriers.ts';
import { rejection, ServiceError } from './http.ts';
import { parseJson, validated, validatedAt, validatedTrackerInput } from './input.ts';
import type { FakeState } from './state.ts';
import { type TrackerState, toHints, trackerView, trackingView } from './trackers.ts';

/** A request that reached its endpoint, not yet checked against the endpoint's rules. */
export interface Call {
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
  readonly bodyText: string;
}

interface HandlerResult {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

type Handler = (call: Call, state: FakeState) => HandlerResult;

/** The envelope of every success but the bulk one. */
function success(status: number, data: unknown): HandlerResult {
  return { status, body: { data } };
}

function addressedTracker({ params, query }: Call, state: FakeState): TrackerState {
  const { searchBy } = validated(endpoints['trackers.get'].request.query, query);
  const tracker = state.trackers.find(params['trackerId'], searchBy);
  if (tracker === undefined) throw rejection(404, 'tracker_not_found', 'There is no such tracker.');
  return tracker;
}

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
function createItem(inputData: unknown, state: FakeState) {
  try {
    const input = validatedTrackerInput(state.now(), inputData);
    const { tracker, isNew } = state.createTracker(input, 'trackers.createBulk');
    const itemStatus = isNew ? 'created' : 'existing';
    return { itemStatus, inputData, tracker: trackerView(tracker, state.now()), errors: null };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return { itemStatus: 'error', inputData, tracker: null, errors: error.errors };
  }
}

/** What the service found the shipment by, so it is fixed once data was gathered. */
const FIXED_FIELDS = ['courierCode', 'originCountryCode', 'destinationCountryCode', 'shippingDate'] as const;

/** True once there are data; a tracker that was given up without any never has results. */
function hasResults(tracker: TrackerState): boolean {
  return tracker.shipment.events.length > 0;
}

/** The results of the trackers that have some; when none of them has any, the option `noResults` decides. */
function results(trackers: readonly TrackerState[], state: FakeState): HandlerResult {
  const withResults = trackers.filter(hasResults);
  const isTooEarly = trackers.length > 0 && withResults.length === 0;
  if (isTooEarly && state.options.noResults === 'parcel_not_found')
    throw rejection(404, 'parcel_not_found', 'There are no data on this shipment yet.');
  return success(200, { trackings: withResults.map((tracker) => trackingView(tracker, state.now())) });
}

/** One handler for every row of the endpoint table; a row without one does not compile. */
export const handlers: Readonly<Record<EndpointName, Handler>> = {
  'trackers.create': ({ bodyText }, state) => {
    const input = validatedTrackerInput(state.now(), parseJson(bodyText));
    const { tracker, isNew } = state.createTracker(input, 'trackers.create');
    const status = isNew ? 201 : (state.options.existingStatus ?? 201);
    return success(status, { tracker: trackerView(tracker, state.now()) });
  },
  'trackers.list': ({ query }, state) => {
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
  },
  'trackers.createBulk': ({ bodyText }, state) => {
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
    const body = { summary, data, error: null };
    if (summary.totalErrors === 0) return { status: 201, body: { status: 'success', ...body } };
    if (summary.totalErrors < data.length) return { status: 207, body: { status: 'partial', ...body } };
    const error = { code: 'processing_error', message: 'No item could be processed.' };
    return { status: 400, body: { status: 'error', ...body, error } };
  },
  'trackers.track': ({ bodyText }, state) => {
    const nowMs = state.now();
    const input = validatedTrackerInput(nowMs, parseJson(bodyText));
    const { tracker, isNew } = state.createTracker(input, 'trackers.track');
    const { courierCodes } = state.number(tracker.trackingNumber);
    if (canRespondAtOnce(state.couriers, tracker, courierCodes)) state.fetchResults(tracker, nowMs);
    const status = isNew ? 201 : (state.options.existingStatus ?? 200);
    return success(status, { trackings: [trackingView(tracker, nowMs)] });
  },
  'trackers.get': (call, state) =>
    success(200, { tracker: trackerView(addressedTracker(call, state), state.now()) }),
  'trackers.update': (call, state) => {
    const tracker = addressedTracker(call, state);
    const { body } = endpoints['trackers.update'].request;
    const patch = validatedAt<TrackerUpdateRequest>(state.now(), body, parseJson(call.bodyText));
    if (hasResults(tracker) && FIXED_FIELDS.some((field) => patch[field] !== undefined)) {
      const message = 'Data was gathered for this tracker; courier, countries and shipping date are fixed.';
      throw rejection(400, 'tracker_not_updatable', message);
    }
    state.updateTracker(tracker, patch);
    return success(200, { tracker: trackerView(tracker, state.now()) });
  },
  'trackers.results': (call, state) => {
    const tracker = addressedTracker(call, state);
    return results([tracker], state);
  },
  'trackers.resultsByTrackingNumber': ({ params }, state) => {
    const rules = endpoints['trackers.resultsByTrackingNumber'].request.params;
    const { trackingNumber } = validated(rules, params);
    return results(state.trackers.withTrackingNumber(trackingNumber.toUpperCase()), state);
  },
  'trackers.resendWebhookEvents': (call, state) => {
    const { trackerId } = addressedTracker(call, state);
    if (!state.options.webhooks)
      throw rejection(400, 'webhook_url_missing', 'No webhook URL is registered for the account.');
    return success(201, { summary: { totalResent: state.resend(trackerId) } });
  },
  'trackers.webhookHistory': (call, state) => {
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
    const webhooks = attempts.map(
      ({ succeeded, sentAt, status, requestBody, responseBody, responseHeaders }) => ({
        status: succeeded ? 'success' : 'failed',
        pushTimestamp: sentAt,
        requestBody,
        responseBody,
        responseHeaders,
        responseStatusCode: status === null ? null : String(status),
      }),
    );
    const day = new Date(state.now()).toISOString().slice(0, 10).replaceAll('-', '');
    const filename = `webhook-history-${trackingNumber}-${day}.json`;
    const headers = { 'content-disposition': `attachment; filename="${filename}"` };
    return { status: 200, body: { metadata, webhooks }, headers };
  },
  'tracking.search': ({ bodyText }, state) => {
    const input = validatedAt(state.now(), endpoints['tracking.search'].request.body, parseJson(bodyText));
    if (state.searches >= state.options.plans.perCall.quota)
      throw rejection(403, 'quota_limit_reached', 'The per-call quota is used up.');
    state.searches += 1;
    const hints = toHints(input);
    const number = state.askedNumber(input.trackingNumber);
    const hasResponse =
      canRespond(state.couriers, hints) && canRespondAtOnce(state.couriers, hints, number.courierCodes);
    return success(201, { trackings: [resultsView(number, hints, hasResponse ? number.events : [])] });
  },
  // On every plan: service.md 1 names it for none, and a client needs it for either.
  'couriers.list': (_call, state) => success(200, { couriers: state.couriers.map(publicCourier) }),
};
