// Sends the mails that wait in the table `mails`. This example prints them.
import { describeMilestone } from 'tracking-client/events';
import type { Database } from './database.ts';

export interface Mail {
  /** Stays the same if the mail is sent again, so that the mail service can drop the duplicate. */
  readonly idempotencyKey: string;
  readonly to: string;
  readonly text: string;
}

/** If the process dies while it sends a mail, the mail is sent again a minute later. So a call to a mail service must be shorter. */
const TAKE = `WITH due AS (
  SELECT order_id, milestone FROM mails WHERE sent_at IS NULL AND mail_taken_at < now() - interval '1 minute'
  ORDER BY queued_at LIMIT 1 FOR UPDATE SKIP LOCKED
)
UPDATE mails SET mail_taken_at = now() FROM due, orders
WHERE mails.order_id = due.order_id AND mails.milestone = due.milestone AND orders.id = mails.order_id
RETURNING mails.milestone, orders.id, orders.number, orders.email`;
const MARK = 'UPDATE mails SET sent_at = now() WHERE order_id = $1 AND milestone = $2';

/**
 * Sends all mails that are due.
 *
 * @param shopUrl - the public URL of the shop, without a slash at the end
 * @param signal - ends the round after the mail that is being sent
 * @param send - calls your mail service
 */
export async function sendMails(db: Database, shopUrl: string, signal?: AbortSignal, send = printMail) {
  while (!signal?.aborted) {
    const [due] = await db.query<{ milestone: string; id: string; number: string; email: string }>(TAKE);
    if (due === undefined) return;
    const { milestone, id, number, email } = due;
    const text = `Your order ${number}: ${describeMilestone(milestone)}. ${shopUrl}/orders/${id}`;
    try {
      await send({ idempotencyKey: `${id}:${milestone}`, to: email, text });
      await db.query(MARK, [id, milestone]);
    } catch (error) {
      console.error(`The mail about order ${number} is sent again in a minute:`, error);
    }
  }
}

async function printMail({ to, text }: Mail): Promise<void> {
  console.log(`Mail to ${to}: ${text}`);
}
