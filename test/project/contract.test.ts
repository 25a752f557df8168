import { fileURLToPath } from 'node:url';
import { dereference } from '@readme/openapi-parser';
import { describe, expect, test } from 'vitest';
import { compareContract } from '../../scripts/support/contract.ts';

const FILE = fileURLToPath(new URL('./contract/openapi.yaml', import.meta.url));

/** The differences of one kind, each on a line. */
async function list(change: string): Promise<string[]> {
  const differences = compareContract(await dereference(FILE));
  return differences
    .filter((difference) => difference.change === change)
    .map(({ what, where, ours, service }) => `${where}: ${what}, ${ours} -> ${service}`.trim());
}

describe('a service that has moved', () => {
  test('new endpoints, parameters, fields, values and rules → each is listed', async () => {
    expect(await list('new')).toEqual([
      'POST /trackers header: field X-Trace,  -> value',
      'POST /trackers body.orderNumber: pattern of orderNumber,  -> ^\\d',
      'POST /trackers body.recipient: field phone,  -> value',
      'POST /trackers response: field parent,  -> any',
      'POST /trackers error.code: values of code,  -> courier_unknown',
      'GET /trackers query: field since,  -> value',
      'GET /trackers header: field X-Trace,  -> value',
      'GET /trackers response[]: field parent,  -> any',
      'GET /trackers/{trackerId} response: field parent,  -> any',
      'GET /trackers/{trackerId}/results response.tracker: field parent,  -> any',
      'GET /trackers/{trackerId}/results response.shipment.shipmentId: values of shipmentId,  -> one, two',
      'GET /trackers/{trackerId}/results response.shipment: field weight,  -> value',
      'GET /trackers/{trackerId}/results response.events[].statusMilestone: values of statusMilestone,  -> returned',
      'DELETE /trackers/{id}: endpoint,  -> DELETE /trackers/{id}',
      'webhook events.trackings[].events[].statusMilestone: values of statusMilestone,  -> returned',
      'webhook events.trackings[]: field pushedBy,  -> value',
    ]);
  });

  test('other lengths, characters, bounds, kinds and envelopes → each is listed with both sides', async () => {
    expect(await list('changed')).toEqual([
      'POST /trackers body.courierCode: maxItems of courierCode, 3 -> 5',
      'POST /trackers body.destinationPostCode: pattern of destinationPostCode, only  -./0-9A-Z_a-z -> only  #-./0-9A-Z_a-z',
      'POST /trackers body.trackingUrl: maxLength of trackingUrl, 1000 -> 2000',
      'GET /trackers query.limit: maximum of limit, 500 -> 1000',
      'GET /trackers/{trackerId}/results response.statistics.timestamps: kind of timestamps, object -> value',
      'GET /couriers: response, `data` ->',
    ]);
  });

  test('what the service no longer has → listed as missing', async () => {
    const missing = await list('missing');
    expect(missing).toEqual(
      expect.arrayContaining([
        'PATCH /trackers/{trackerId}: endpoint, trackers.update ->',
        'GET /trackers/{trackerId}/results response.shipment: field delivery, object ->',
        'GET /trackers/{trackerId}/results response.events[].statusMilestone: values of statusMilestone, exception ->',
        'webhook events.trackings[]: field shipment, object ->',
      ]),
    );
    expect(missing.filter((line) => line.includes(': endpoint'))).toHaveLength(7);
  });
});
