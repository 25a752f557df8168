import {
  buildCourier,
  buildEvent,
  buildProofOfDelivery,
  buildTracker,
  buildTracking,
  buildWebhookMessage,
} from 'tracking-client/testing';
import { describe, expect, test } from 'vitest';
import { breachesOf } from './support/schemas.ts';

/** As the service would send it: `kind` is what our parser adds. */
function sent({ kind: _kind, ...item }: { readonly kind: string }): object {
  return item;
}

describe.each([1, 2, 'basket 7'])('builders with seed %s', (seed) => {
  test.each([
    ['buildTracker', 'tracker', buildTracker({}, { seed })],
    ['buildTracking', 'tracking', buildTracking({}, { seed })],
    ['buildEvent', 'event', buildEvent({}, { seed })],
    ['buildCourier', 'courier', buildCourier({}, { seed })],
    ['buildWebhookMessage', 'webhook-events', sent(buildWebhookMessage({}, { seed }))],
    ['buildProofOfDelivery', 'webhook-proof-of-delivery', sent(buildProofOfDelivery({}, { seed }))],
  ])('%s → a record that keeps the contract', (_name, schema, record) => {
    expect(breachesOf(schema, record)).toEqual([]);
  });
});
