import { z } from 'zod';
import { observed, record } from './record.ts';

/**
 * The schema of `ResendResult`.
 *
 * @specification public contract
 */
export const resendResultSchema = record({
  /** How many webhook events were queued again, when the service tells; declared as a string, seen as a number. */
  totalResent: z
    .union([z.number(), z.string().regex(/^\d+$/).transform(Number)])
    .nullish()
    .transform((total) => total ?? undefined)
    .optional(),
});
/**
 * What `trackers.resendWebhookEvents` answers with.
 *
 * @specification public contract
 */
export type ResendResult = z.output<typeof resendResultSchema>;

/**
 * The schema of `WebhookHistory`.
 *
 * @specification public contract
 */
export const webhookHistorySchema = record({
  /** What the service says about the list; its shape is not documented. */
  metadata: observed(z.record(z.string(), z.unknown())),
  /** The pushes as the service recorded them; their shape is not documented. */
  webhooks: z.array(z.unknown()),
});
/**
 * The webhooks that were sent for a tracker.
 *
 * @specification public contract
 */
export type WebhookHistory = z.output<typeof webhookHistorySchema>;
