import type { z } from 'zod';
import { bulkItemSchema, bulkResultSchema } from './bulk.ts';
import { courierSchema } from './courier.ts';
import { eventSchema } from './event.ts';
import { trackerSchema } from './tracker.ts';
import {
  recipientSchema,
  shipmentDeliverySchema,
  shipmentSchema,
  statisticsSchema,
  trackingSchema,
} from './tracking.ts';
import { webhookHistorySchema } from './webhook.ts';

/** The records the service sends, recognised by their fields. */
const RECORDS: readonly z.ZodObject[] = [
  trackerSchema,
  trackingSchema,
  eventSchema,
  shipmentSchema,
  shipmentDeliverySchema,
  recipientSchema,
  statisticsSchema,
  courierSchema,
  bulkResultSchema,
  bulkItemSchema,
  webhookHistorySchema,
];

function countKnown(schema: z.ZodObject, fields: readonly string[]): number {
  return fields.filter((field) => Object.hasOwn(schema.shape, field)).length;
}

/**
 * The fields of a record that its schema does not know: what the service added since this version was released.
 *
 * @param record - a record as a method returned it
 * @param schema - the schema to compare with. Default: the known record that shares the most fields
 * @returns a new object with the unknown fields; empty when there are none
 * @example
 * unknownFields(await client.trackers.get(id)); // { carbonFootprint: 12 }
 */
export function unknownFields(record: object, schema?: z.ZodObject): Record<string, unknown> {
  const fields = Object.keys(record);
  const known =
    schema ??
    RECORDS.reduce((best, candidate) =>
      countKnown(candidate, fields) > countKnown(best, fields) ? candidate : best,
    );
  return Object.fromEntries(Object.entries(record).filter(([field]) => !Object.hasOwn(known.shape, field)));
}
