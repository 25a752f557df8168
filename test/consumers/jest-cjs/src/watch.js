const { isTrackingError, NotFoundError } = require('tracking-client');
const { createWebhookHandler, MemoryDedupeStore, WebhookInbox } = require('tracking-client/webhooks');

/** Watches a parcel until it has arrived or tracking has stopped. */
async function watch(client, trackerId) {
  try {
    const tracking = await client.trackers.waitUntilStopped(trackerId, {
      intervalMs: 3_600_000,
      until: ({ shipment }) => shipment?.statusMilestone === 'delivered',
    });
    return tracking.shipment?.statusMilestone;
  } catch (error) {
    if (error instanceof NotFoundError) return 'unknown';
    if (isTrackingError(error)) return `failed: ${error.name}`;
    throw error;
  }
}

/** The endpoint for webhooks; it reports each exception once. */
function alarmEndpoint(secret, ring) {
  return createWebhookHandler({
    secret,
    inbox: new WebhookInbox({ store: new MemoryDedupeStore() }),
    onEvent: (event, { message }) => {
      if (event.statusMilestone === 'exception') ring(message.tracker.trackingNumber);
    },
  });
}

module.exports = { watch, alarmEndpoint };
