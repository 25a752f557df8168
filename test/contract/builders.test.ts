import {
  buildCourier,
  buildEvent,
  buildProofOfDelivery,
  buildTracker,
  buildTracking,
  buildWebhookMessage,
} from 'tracking-client/testing';
import { describe, expect, test } from 'vitest';
import { findBreaches, type SchemaName } from './support/schemas.ts';

/** Drops `kind`, which our parser adds and the service does not send. */
function toSent({ kind: _kind, ...item }: { readonly kind: string }): object {
  return item;
}

describe.each([1, 2, 'basket 7'])('builders with seed %s', (seed) => {
  test.each<[string, SchemaName, unknown]>([
    ['buildTracker', 'tracker', buildTracker({}, { seed })],
    ['buildTracking', 'tracking', buildTracking({}, { seed })],
    ['buildEvent', 'event', buildEvent({}, { seed })],
    ['buildCourier', 'courier', buildCourier({}, { seed })],
    ['buildWebhookMessage', 'webhookEvents', toSent(buildWebhookMessage({}, { seed }))],
    ['buildProofOfDelivery', 'webhookProofOfDelivery', toSent(buildProofOfDelivery({}, { seed }))],
  ])('%s → a record that the schema %s allows', (_name, schema, record) => {
    expect(findBreaches(schema, record)).toEqual([]);
  });
});
