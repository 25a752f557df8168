import { describe, expect, test } from 'vitest';
import type { TrackingClient } from '../../src/client.ts';
import { RequestValidationError } from '../../src/errors.ts';
import type { TrackerInput } from '../../src/schemas/tracker.ts';
import { TRACKER } from '../support/calls.ts';
import { makeClient, rejectionOf } from '../support/make-client.ts';
import { collect } from '../trackers/bulk-service.ts';

const NUMBER = { trackingNumber: 'LA680658838NL' };

/** What a caller in plain JavaScript passes. */
const untyped = (input: object) => input as TrackerInput;
/** The same, where it is of another kind altogether. */
const misplaced = (input: unknown) => input as never;

async function refusal(input: object): Promise<unknown> {
  const { client, requests } = makeClient({ body: { data: { tracker: TRACKER } } });
  const error = await rejectionOf(client.trackers.create(untyped(input)));
  expect(requests).toHaveLength(0);
  return error;
}

async function sentBody(input: object): Promise<unknown> {
  const { client, requests } = makeClient({ body: { data: { tracker: TRACKER } } });
  await client.trackers.create(untyped(input));
  return JSON.parse(requests[0]?.body ?? '');
}

describe('a field close to a known one', () => {
  test.each([
    ['another case', { ...NUMBER, clientTrackerID: 'x' }, 'clientTrackerID', 'clientTrackerId'],
    ['snake case', { tracking_number: 'LA680658838NL' }, 'tracking_number', 'trackingNumber'],
    ['a letter too few', { ...NUMBER, shipingDate: '2030-01-01' }, 'shipingDate', 'shippingDate'],
    [
      'two letters changed',
      { ...NUMBER, destinationPostCdoe: '1' },
      'destinationPostCdoe',
      'destinationPostCode',
    ],
    ['two letters changed in a name of eight', { ...NUMBER, setitngs: {} }, 'setitngs', 'settings'],
    ['one in a part', { ...NUMBER, recipient: { mail: 'a@b.c' } }, 'recipient.mail', 'recipient.email'],
  ])(
    '%s → refused before anything is sent, with the name that was meant',
    async (_how, input, given, meant) => {
      const error = await refusal(input);
      expect(error).toBeInstanceOf(RequestValidationError);
      expect(error).toMatchObject({
        code: 'validation_error',
        message: `Expected a known field, got \`${given}\`; did you mean \`${meant}\`?`,
        issues: [{ code: 'unrecognized_keys' }],
      });
    },
  );

  test('in an item of a bulk → its place is named', async () => {
    const { client } = makeClient();
    const items = [NUMBER, untyped({ ...NUMBER, clientTrackerID: 'x' })];
    expect(await rejectionOf(client.trackers.createBulk(items))).toMatchObject({
      message:
        'Expected a known field, got `items[1].clientTrackerID`; did you mean `items[1].clientTrackerId`?',
    });
  });

  test('in an input of createMany → that input is invalid, the others are sent', async () => {
    const { client, requests } = makeClient({ body: { status: 'success', data: [] } });
    const inputs = [untyped({ ...NUMBER, clientTrackerID: 'x' }), NUMBER];
    const { outcomes } = await collect(client.trackers.createMany(inputs));
    expect(outcomes[0]).toMatchObject({
      status: 'invalid',
      errors: [
        {
          code: 'validation_error',
          message: 'Expected a known field, got `clientTrackerID`; did you mean `clientTrackerId`?',
        },
      ],
    });
    expect(requests[0]?.body).toBe(JSON.stringify([NUMBER]));
  });

  test('in a patch and in a search → refused, too', async () => {
    const { client } = makeClient();
    const message = 'Expected a known field, got `couriercode`; did you mean `courierCode`?';
    const patch = untyped({ couriercode: 'us-post' });
    expect(await rejectionOf(client.trackers.update('t', patch))).toMatchObject({ message });
    const search = untyped({ ...NUMBER, couriercode: 'us-post' });
    expect(await rejectionOf(client.tracking.search(search))).toMatchObject({ message });
  });
});

describe('a field that the service may know', () => {
  test.each([
    ['close to none', { ...NUMBER, carbonFootprint: true }],
    ['beside the known one it is close to', { ...NUMBER, clientTrackerId: 'a', clientTrackerIds: ['a'] }],
    ['of another word', { ...NUMBER, courierCity: 'Lille' }],
    ['two letters off a short one', { ...NUMBER, table: 'x' }],
  ])('%s → sent as given', async (_how, input) => {
    expect(await sentBody(input)).toEqual(input);
  });
});

describe('nothing to look for fields in', () => {
  test.each([undefined, null])('a part that is %s → left out', async (recipient) => {
    expect(await sentBody({ ...NUMBER, recipient })).toEqual(NUMBER);
  });

  test.each([
    ['text for an input', (client: TrackingClient) => client.trackers.create(misplaced('x')), 'object'],
    ['an object for a list', (client: TrackingClient) => client.trackers.createBulk(misplaced({})), 'array'],
  ])('%s → refused by the rule it breaks', async (_what, call, kind) => {
    const error = await rejectionOf(call(makeClient().client));
    expect(error).toBeInstanceOf(RequestValidationError);
    expect(error).toMatchObject({ message: expect.stringContaining(`to be an ${kind}, got`) });
  });
});
