import { describe, expect, it } from 'vitest';
import { makeFake, NUMBER } from '../make-fake.ts';

describe('POST /trackers/{trackerId}/webhook-events/resend', () => {
  it('a second resend after the first was sent → the events count once, and are queued once', async () => {
    const { fake, call, createId } = makeFake();
    const id = await createId();
    fake.shipment(NUMBER).addEvent().deliver();
    const resent: unknown[] = [];
    for (let round = 0; round < 3; round += 1) {
      fake.webhooks.take();
      const { body } = await call('POST', `/trackers/${id}/webhook-events/resend`);
      resent.push([body.data.summary.totalResent, fake.webhooks.pending.length]);
    }
    expect(resent).toEqual([
      [2, 2],
      [2, 2],
      [2, 2],
    ]);
  });
});
