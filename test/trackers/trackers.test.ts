import { describe, expect, test } from 'vitest';
import type { TrackerInput } from '../../src/schemas/tracker.ts';
import { TRACKER, TRACKING } from '../support/calls.ts';
import { makeClient, rejectionOf } from '../support/make-client.ts';

const input = { trackingNumber: 'LA680658838NL' };

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
});
