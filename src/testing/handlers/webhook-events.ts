import { ServiceError } from '../service/replies.ts';
import { type Answer, type Handler, success } from './handler.ts';
import { addressedTracker } from './trackers.ts';

/** `POST /trackers/{trackerId}/webhook-events/resend`: queues what was pushed before (service.md 6, public contract). */
export const resendWebhookEvents: Handler = (call, world) => {
  const { trackerId } = addressedTracker(call, world);
  if (!world.options.webhooks)
    throw new ServiceError(400, {
      code: 'webhook_url_missing',
      message: 'No webhook URL is registered for the account.',
    });
  return success(201, { summary: { totalResent: world.resend(trackerId) } });
};

/** The pushes that were sent for a tracker, as a file (public contract). */
export const webhookHistory: Handler = (call, world): Answer => {
  const { trackerId } = addressedTracker(call, world);
  const webhooks = world.webhooks.history
    .filter((push) => push.trackerId === trackerId && push.attempts.length > 0)
    .map(({ item, attempts }) => ({ payload: { trackings: [item] }, attempts }));
  const generatedAt = new Date(world.now()).toISOString();
  return {
    status: 200,
    body: { metadata: { generatedAt, trackerId }, webhooks },
    headers: { 'content-disposition': `attachment; filename="webhook-history-${trackerId}.json"` },
  };
};
