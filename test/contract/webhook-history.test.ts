import { expect, test, vi } from 'vitest';
import { MemoryDedupeStore, WebhookInbox } from '../../src/webhooks/index.ts';
import { ENVELOPED_WEBHOOK, HISTORY } from './support/samples.ts';

const [ITEM] = ENVELOPED_WEBHOOK.trackings;

/** The item as the example of the service's history shows it: with `shipment` and `events`, and neither `tracker` nor `metadata`. */
const BARE = { shipment: ITEM?.shipment, events: ITEM?.events };

test.each<[string, unknown]>([
  ['shipment and events alone', BARE],
  ['a list of shipment and events alone', { trackings: [BARE] }],
  ['tracker and metadata, too', ENVELOPED_WEBHOOK],
  ['tracker and metadata, too, outside a list', ITEM],
])('a history whose requestBody has %s → the key of the first delivery', async (_title, requestBody) => {
  const inbox = new WebhookInbox({ store: new MemoryDedupeStore() });
  const onEvent = vi.fn();
  const history = { ...HISTORY, webhooks: [{ ...HISTORY.webhooks[0], requestBody }] };
  const first = await inbox.process(ENVELOPED_WEBHOOK, onEvent);
  expect(first).toMatchObject({ outcome: 'done', handled: 1 });
  const replayed = await inbox.processHistory(history, onEvent);
  expect(replayed).toMatchObject({ outcome: 'done', handled: 0, duplicates: 1 });
});
