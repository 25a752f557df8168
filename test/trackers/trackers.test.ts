import { describe, expect, test } from 'vitest';
import { ResponseValidationError } from '../../src/errors.ts';
import type { TrackerInput } from '../../src/schemas/tracker.ts';
import { TRACKER, TRACKING } from '../support/calls.ts';
import { makeClient, rejectionOf } from '../support/make-client.ts';

const input = { trackingNumber: 'LA680658838NL' };
const page = (...ids: string[]) => ({
  data: { trackers: ids.map((trackerId) => ({ ...TRACKER, trackerId })) },
});

describe('envelopes', () => {
  test.each([
    ['shown', { data: { tracker: TRACKER } }],
    ['bare', { data: TRACKER }],
  ])('the %s form of a tracker → the tracker, for create, get and update', async (_form, body) => {
    const { client } = makeClient({ body });
    expect(await client.trackers.create(input)).toEqual(TRACKER);
    expect(await client.trackers.get('t')).toEqual(TRACKER);
    expect(await client.trackers.update('t', { isSubscribed: false })).toEqual(TRACKER);
  });

  test.each([
    ['shown', { data: { trackings: [TRACKING, { events: [] }] } }],
    ['array', { data: [TRACKING] }],
    ['bare', { data: TRACKING }],
  ])('the %s form of results → the first tracking, for results and track', async (_form, body) => {
    const { client } = makeClient({ body });
    expect(await client.trackers.results('t')).toEqual(TRACKING);
    expect(await client.trackers.track(input)).toEqual(TRACKING);
  });

  test.each([
    ['shown', { data: { trackings: [TRACKING, TRACKING] } }],
    ['bare', { data: [TRACKING, TRACKING] }],
  ])('the %s form of results by number → all trackings', async (_form, body) => {
    const { client } = makeClient({ body });
    expect(await client.trackers.resultsByTrackingNumber('LA680658838NL')).toEqual([TRACKING, TRACKING]);
  });

  test.each([
    ['shown', page('a', 'b')],
    ['bare', { data: page('a', 'b').data.trackers }],
  ])('the %s form of a list → the trackers', async (_form, body) => {
    const { client } = makeClient({ body });
    expect((await client.trackers.list()).trackers.map((tracker) => tracker.trackerId)).toEqual(['a', 'b']);
  });

  test('only what the specification shows of a tracking → parsed, no events', async () => {
    const { client } = makeClient({ body: { data: { shipment: {} } } });
    expect(await client.trackers.results('t')).toEqual({ shipment: {}, events: [] });
  });

  test.each([
    { data: {} },
    { data: { tracking: TRACKING } },
    { data: { trackings: [null] } },
    { data: { trackings: [5] } },
  ])('results of another shape (%j) → ResponseValidationError', async (body) => {
    const { client } = makeClient({ body });
    expect(await rejectionOf(client.trackers.results('t'))).toBeInstanceOf(ResponseValidationError);
  });

  test('track without results yet → ResultsNotReadyError', async () => {
    const { client } = makeClient({ status: 201, body: { data: { trackings: [] } } });
    expect(await rejectionOf(client.trackers.track(input))).toMatchObject({
      name: 'ResultsNotReadyError',
      status: 201,
    });
  });
});

describe('resend', () => {
  test.each([
    [{ data: { summary: { totalResent: 3 } } }, { totalResent: 3 }],
    [{ data: { summary: { totalResent: '3' } } }, { totalResent: 3 }],
    [{ data: { summary: { totalResent: null } } }, { totalResent: undefined }],
    [{ data: { summary: {} } }, {}],
    [{ data: { summary: null } }, {}],
    [{ data: {} }, {}],
    [{ data: null }, {}],
    [{ data: [] }, {}],
    [{ data: { summary: { totalResent: 3, queued: 1 } } }, { totalResent: 3, queued: 1 }],
  ])('%j → %j', async (body, result) => {
    const { client } = makeClient({ status: 201, body });
    expect(await client.trackers.resendWebhookEvents('t')).toEqual(result);
  });

  test.each([{}, null, { data: { summary: 'done' } }, { data: { summary: { totalResent: {} } } }])(
    "%j → resolves without a total, also with invalidResponse 'throw'",
    async (body) => {
      const { client, requests } = makeClient(
        { status: 201, body: JSON.stringify(body) },
        { invalidResponse: 'throw' },
      );
      expect((await client.trackers.resendWebhookEvents('t')).totalResent).toBeUndefined();
      expect(requests).toHaveLength(1);
    },
  );

  test.each([
    ['no body', { status: 201 }],
    ['text', { status: 202, body: 'Accepted', headers: { 'content-type': 'text/plain' } }],
    ['broken JSON', { status: 200, body: '{' }],
  ])('%s → resolves without a total', async (_what, answer) => {
    const { client, requests } = makeClient(answer);
    expect(await client.trackers.resendWebhookEvents('t')).toEqual({});
    expect(requests).toHaveLength(1);
  });
});

describe('input', () => {
  test('a broken rule → RequestValidationError with path, code and message, nothing is sent', async () => {
    const { client, requests } = makeClient({ status: 500 });
    expect(await rejectionOf(client.trackers.create({ trackingNumber: '123456789' }))).toMatchObject({
      name: 'RequestValidationError',
      code: 'validation_error',
      message: 'Expected `trackingNumber` to be a real tracking number, got a plain ascending run of digits',
      issues: [{ path: ['trackingNumber'] }],
    });
    expect(requests).toHaveLength(0);
  });

  test.each(['create', 'track'] as const)(
    '%s with a date that is surely outdated → the code of the service, without a call',
    async (method) => {
      const { client, requests } = makeClient({ status: 500 });
      const error = await rejectionOf(client.trackers[method]({ ...input, shippingDate: '2020-01-01' }));
      expect(error).toMatchObject({ name: 'RequestValidationError', code: 'shipping_date_outdated' });
      expect(requests).toHaveLength(0);
    },
  );

  test('a field that no rule knows → sent as given', async () => {
    const { client, requests } = makeClient({ body: { data: TRACKER } });
    const extended: TrackerInput & { addedLater: number } = { ...input, addedLater: 1 };
    await client.trackers.create(extended);
    expect(JSON.parse(requests[0]?.body ?? '')).toEqual({ ...input, addedLater: 1 });
  });

  test('every field → sent as given', async () => {
    const full: TrackerInput = {
      trackingNumber: 'la680658838nl',
      courierCode: ['fr-post', 'us-post'],
      clientTrackerId: 'order-1',
      shipmentReference: 'ref',
      originCountryCode: 'CN',
      destinationCountryCode: 'FRA',
      destinationPostCode: '75001',
      shippingDate: '2999-01-01T10:00:00+02:00',
      courierName: 'La Poste',
      trackingUrl: 'https://example.test',
      orderNumber: '1042',
      title: 'Shoes',
      recipient: { email: 'a@b.test', name: 'A' },
      settings: { restrictTrackingToCourierCode: ['fr-post'] },
    };
    const { client, requests } = makeClient({ body: { data: TRACKER } });
    await client.trackers.create(full);
    expect(JSON.parse(requests[0]?.body ?? '')).toEqual(full);
  });

  test('a field that JSON cannot hold → RequestValidationError, nothing is sent', async () => {
    const { client, requests } = makeClient({ body: { data: TRACKER } });
    const odd: TrackerInput & { big: bigint } = { ...input, big: 5n };
    expect(await rejectionOf(client.trackers.create(odd))).toMatchObject({
      name: 'RequestValidationError',
      message: 'Expected `input` to be a JSON value, got an object',
    });
    expect(requests).toHaveLength(0);
  });

  test('a bulk with an item that is no object → RequestValidationError that names it', async () => {
    const { client } = makeClient({ status: 500 });
    // What a caller without types may pass.
    const items = [input, null] as unknown as TrackerInput[];
    expect(await rejectionOf(client.trackers.createBulk(items))).toMatchObject({
      message: 'Expected `items[1]` to be an object, got null',
    });
  });

  test('a bulk with one bad item → RequestValidationError that names it, nothing is sent', async () => {
    const { client, requests } = makeClient({ status: 500 });
    expect(await rejectionOf(client.trackers.createBulk([input, { trackingNumber: 'x' }]))).toMatchObject({
      message: 'Expected `items[1].trackingNumber` to have 5 to 50 characters, got a string of 1 character',
      issues: [{ path: [1, 'trackingNumber'] }],
    });
    expect(requests).toHaveLength(0);
  });

  test('a bulk → the bare array', async () => {
    const { client, requests } = makeClient({ body: { status: 'success' } });
    await client.trackers.createBulk([input, input]);
    expect(JSON.parse(requests[0]?.body ?? '')).toEqual([input, input]);
  });

  test('an empty patch → RequestValidationError, nothing is sent', async () => {
    const { client, requests } = makeClient({ status: 500 });
    expect(await rejectionOf(client.trackers.update('t', {}))).toMatchObject({
      message: 'Expected `patch` to have at least one field, got none',
    });
    expect(requests).toHaveLength(0);
  });
});
