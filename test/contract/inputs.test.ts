import { RequestValidationError, ShippingDateOutdatedError, type TrackerInput } from 'tracking-client';
import { describe, expect, test } from 'vitest';
import { NUMBER, virtualTime } from './support/contract-fake.ts';
import { TRACKER, TRACKING } from './support/samples.ts';
import { rejectionOf, stubClient } from './support/stub-client.ts';

const CREATED = { status: 201, body: { data: { tracker: TRACKER } } };

/** What is sent of an input, at noon of 10 March 2026; a refusal fails the test. */
async function sent(input: object): Promise<unknown> {
  virtualTime();
  const { client, requests } = stubClient(CREATED);
  const whole: TrackerInput = { trackingNumber: NUMBER, ...input };
  await client.trackers.create(whole);
  return requests[0]?.body;
}

/** What an input is refused with, before anything is sent. */
async function refusal(input: object): Promise<unknown> {
  virtualTime();
  const { client, requests } = stubClient(CREATED);
  const whole: TrackerInput = { trackingNumber: NUMBER, ...input };
  const error = await rejectionOf(client.trackers.create(whole));
  expect(requests).toEqual([]);
  return error;
}

describe('shippingDate: ISO 8601 (service.md 2.1)', () => {
  test.each([
    '2026-03-01',
    '2026-03-01T10:00:00Z',
    '2026-03-01T10:00:00+02:00',
    '2026-03-01T10:00:00.123Z',
    '2026-03-01T10:00',
  ])('%s → sent as given', async (shippingDate) => {
    expect(await sent({ shippingDate })).toMatchObject({ shippingDate });
  });

  test.each([
    '01.03.2026',
    '03/01/2026',
    '2026-13-01',
    '2026-02-30',
    '2026-W54-1',
    '2026-366',
    'yesterday',
    '',
  ])('%j → RequestValidationError', async (shippingDate) => {
    expect(await refusal({ shippingDate })).toBeInstanceOf(RequestValidationError);
  });

  test('older than 180 days → a RequestValidationError with the code, without a call', async () => {
    const error = await refusal({ shippingDate: '2025-01-01' });
    expect(error).toBeInstanceOf(RequestValidationError);
    expect(error).toMatchObject({ issues: [{ code: 'shipping_date_outdated' }] });
  });
});

describe('recipient.email', () => {
  test.each(['ada@example.test', 'a+b@example.test', '"ada lovelace"@example.test', '"a\\"b"@example.test'])(
    '%s → sent as given',
    async (email) => {
      expect(await sent({ recipient: { email } })).toMatchObject({ recipient: { email } });
    },
  );

  test.each(['ada', 'ada@', '@example.test', 'ada lovelace@example.test', `${'a'.repeat(250)}@b.cd`])(
    '%s → RequestValidationError',
    async (email) => {
      expect(await refusal({ recipient: { email } })).toBeInstanceOf(RequestValidationError);
    },
  );
});

describe('null of a database row', () => {
  test.each([
    'courierCode',
    'clientTrackerId',
    'shipmentReference',
    'originCountryCode',
    'destinationCountryCode',
    'destinationPostCode',
    'shippingDate',
    'courierName',
    'trackingUrl',
    'recipient',
    'settings',
    'orderNumber',
    'title',
  ])('%s: null → as if it were left out', async (field) => {
    expect(await sent({ [field]: null })).toEqual({ trackingNumber: NUMBER });
  });

  test('recipient with a null → only what is there', async () => {
    const recipient = { name: 'Ada', email: null };
    expect(await sent({ recipient })).toEqual({ trackingNumber: NUMBER, recipient: { name: 'Ada' } });
  });

  test('trackingNumber: null → RequestValidationError', async () => {
    expect(await refusal({ trackingNumber: null })).toBeInstanceOf(RequestValidationError);
  });
});

describe('which code decides', () => {
  test('[unknown_code, shipping_date_outdated] → ShippingDateOutdatedError', async () => {
    const errors = [{ code: 'unknown_code' }, { code: 'shipping_date_outdated' }];
    const { client } = stubClient({ status: 400, body: { errors, data: null } });
    const error = await rejectionOf(client.trackers.create({ trackingNumber: NUMBER }));
    expect(error).toBeInstanceOf(ShippingDateOutdatedError);
    expect(error).toMatchObject({ errors });
  });
});

describe('a short key', () => {
  const options = { apiKey: 'any' };

  test('a code that holds it as letters → is not touched', async () => {
    const errors = [{ code: 'company_x', message: 'The company is unknown.' }];
    const { client } = stubClient({ status: 400, body: { errors, data: null } }, options);
    const error = await rejectionOf(client.trackers.get('t1'));
    expect(error).toMatchObject({ code: 'company_x', errors });
  });

  test('a message that holds it as a word → without it', async () => {
    const errors = [{ code: 'auth_invalid_api_key', message: 'The key any is not known.' }];
    const { client } = stubClient({ status: 401, body: { errors, data: null } }, options);
    const error = await rejectionOf(client.trackers.get('t1'));
    expect(String(Object(error).message)).not.toMatch(/\bany\b/);
  });

  test('records that hold it as letters → as they came', async () => {
    const tracking = { ...TRACKING, shipment: { ...TRACKING.shipment, statusCode: 'company_x' } };
    const { client } = stubClient({ body: { data: { trackings: [tracking] } } }, options);
    expect(await client.trackers.results('t1')).toEqual(tracking);
  });
});
