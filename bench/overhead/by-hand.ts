/** Makes the call as an app without this package would: with `ky`, one schema of the fields it reads, and one retry rule. */
import ky, { HTTPError } from 'ky';
import pRetry from 'p-retry';
import { z } from 'zod';

const event = z.object({
  eventId: z.string(),
  trackingNumber: z.string(),
  eventTrackingNumber: z.string().nullish(),
  status: z.string(),
  occurrenceDatetime: z.string(),
  order: z.number().nullish(),
  location: z.string().nullish(),
  sourceCode: z.string().nullish(),
  courierCode: z.string().nullish(),
  statusCode: z.string().nullish(),
  statusCategory: z.string().nullish(),
  statusMilestone: z.string(),
});
const tracker = z.object({ trackerId: z.string(), trackingNumber: z.string(), isTracked: z.boolean() });
const shipment = z.object({ shipmentId: z.string(), statusMilestone: z.string() });
const tracking = z.object({ tracker, shipment, events: z.array(event) });
const results = z.object({ data: z.object({ trackings: z.array(tracking) }) });

export function createCall(baseUrl: string): () => Promise<unknown> {
  const api = ky.create({
    prefixUrl: baseUrl,
    headers: { authorization: 'Bearer key-of-the-bench', accept: 'application/json' },
    timeout: 30_000,
    retry: 0,
  });
  return () =>
    pRetry(async () => results.parse(await api.get('trackers/abc/results').json()).data.trackings[0], {
      retries: 3,
      shouldRetry: ({ error }) => !(error instanceof HTTPError) || error.response.status >= 500,
    });
}
