import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { DAY_MS, makeFake, NUMBER, OTHER_NUMBER, refusal } from '../make-fake.ts';

type Fake = ReturnType<typeof makeFake>['fake'];

function readEventIds(fake: Fake): (string | null | undefined)[][] {
  return fake.webhooks.pending.map(({ item }) =>
    'events' in item ? item.events.map((event) => event.eventId) : [],
  );
}

describe('fake.webhooks', () => {
  it('events added together, and a later event → a push for each, oldest first', async () => {
    const { fake, create } = makeFake();
    await create();
    const [older, newer] = ['2026-03-08', '2026-03-09'];
    fake
      .shipment(NUMBER)
      .addEvent({ eventId: 'b', occurrenceDatetime: newer }, { eventId: 'a', occurrenceDatetime: older })
      .deliver({ eventId: 'c' });
    expect(readEventIds(fake)).toEqual([['a'], ['b'], ['c']]);
    expect(fake.webhooks.pending).toMatchObject([
      { item: { shipment: { statusMilestone: 'in_transit' } } },
      { item: { shipment: { statusMilestone: 'in_transit' } } },
      { item: { shipment: { statusMilestone: 'delivered' } } },
    ]);
  });

  it('groupEvents, events added together → one push, newest first; a later event → a second push', async () => {
    const { fake, create } = makeFake({ groupEvents: true });
    await create();
    fake.shipment(NUMBER).addEvent({ eventId: 'a' }, { eventId: 'b' }).deliver({ eventId: 'c' });
    expect(readEventIds(fake)).toEqual([['b', 'a'], ['c']]);
  });

  it('any events, added together or not → each in one push of its own', async () => {
    const batches = fc.array(fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 5 }));
    await fc.assert(
      fc.asyncProperty(batches, fc.boolean(), async (days, isEarly) => {
        const { fake, create, advance } = makeFake();
        if (!isEarly) await create();
        for (const batch of days)
          fake.shipment(NUMBER).addEvent(...batch.map((day) => ({ occurrenceDatetime: `2026-03-0${day}` })));
        if (isEarly) await create();
        advance(10_000);
        const pushed = readEventIds(fake);
        expect(pushed.every(({ length }) => length === 1)).toBe(true);
        const { events } = fake.shipment(NUMBER);
        expect(pushed.flat().toSorted()).toEqual(events.map(({ eventId }) => eventId).toSorted());
      }),
    );
  });

  it('pushes of one moment → each push of a tracker is generated later than the push before', async () => {
    const { fake, create, advance } = makeFake();
    await create();
    fake.shipment(NUMBER).addEvent().deliver().proveDelivery();
    advance(1000);
    fake.shipment(NUMBER).addEvent();
    expect(fake.webhooks.pending.map(({ item }) => item.metadata?.generatedAt)).toEqual([
      '2026-03-10T12:00:00.000Z',
      '2026-03-10T12:00:00.001Z',
      '2026-03-10T12:00:00.002Z',
      '2026-03-10T12:00:01.000Z',
    ]);
  });

  it('an archived tracker → keeps its results, gets no events; active again → missed events are not pushed', async () => {
    const { fake, call, createId, advance } = makeFake();
    const id = await createId();
    const patch = (isSubscribed: boolean) => call('PATCH', `/trackers/${id}`, { isSubscribed });
    const shipment = fake.shipment({ trackerId: id });
    fake.shipment(NUMBER).addEvent({ eventId: 'before' });
    await patch(false);
    fake.shipment(NUMBER).addEvent({ eventId: 'missed' });
    expect(shipment.events).toMatchObject([{ eventId: 'before' }]);
    await patch(true);
    advance(1000);
    fake.shipment(NUMBER).addEvent({ eventId: 'new' });
    expect(shipment.events).toMatchObject([{ eventId: 'before' }, { eventId: 'new' }]);
    expect(readEventIds(fake)).toEqual([['before'], ['new']]);
  });

  it('a push → metadata, the tracker without isTracked and courierCode, the current shipment', async () => {
    const { fake, create } = makeFake();
    await create({ clientTrackerId: 'mine', courierCode: 'us-post' });
    fake.shipment(NUMBER).deliver();
    const [push] = fake.webhooks.pending;
    expect(push?.item).toMatchObject({
      metadata: {
        generatedAt: '2026-03-10T12:00:00.000Z',
        messageId: expect.any(String),
        topic: 'tracking/events',
      },
      tracker: { trackerId: push?.trackerId, clientTrackerId: 'mine' },
      shipment: { statusMilestone: 'delivered' },
      statistics: { timestamps: { deliveredDatetime: '2026-03-10T12:00:00Z' } },
    });
    expect(push?.item.tracker).not.toHaveProperty('isTracked');
    expect(push?.item.tracker).not.toHaveProperty('courierCode');
  });

  it('an event of a courier outside the restriction of the tracker → not pushed, and does not prolong tracking', async () => {
    const { fake, create, advance } = makeFake();
    await create({ settings: { restrictTrackingToCourierCode: 'us-post' } });
    advance(89 * DAY_MS);
    fake.shipment(NUMBER).addEvent({ courierCode: 'cn-post' });
    advance(DAY_MS);
    expect([fake.webhooks.pending, fake.trackers[0]?.isTracked]).toEqual([[], false]);
  });

  it('two trackers of the number → one push for each tracker, with the same event id', async () => {
    const { fake, create } = makeFake();
    await create();
    await create({ shipmentReference: 'another' });
    fake.shipment(NUMBER).addEvent({ eventId: 'a' });
    expect(readEventIds(fake)).toEqual([['a'], ['a']]);
    expect(new Set(fake.webhooks.pending.map(({ trackerId }) => trackerId)).size).toBe(2);
  });

  it('pushes of events and proofs for two trackers → a message id each, a UUID', async () => {
    const { fake, create } = makeFake();
    await create();
    await create({ shipmentReference: 'another' });
    fake.shipment(NUMBER).addEvent().deliver().proveDelivery();
    const ids = fake.webhooks.pending.map(({ item }) => item.metadata?.messageId);
    expect([ids.length, new Set(ids).size]).toEqual([6, 6]);
    expect(ids.every((id) => z.uuidv4().safeParse(id).success)).toBe(true);
  });

  it('an event before the creation and an event before the first results → both are pushed with these', async () => {
    const { fake, create, advance } = makeFake();
    fake.shipment(NUMBER).addEvent({ eventId: 'a' });
    await create();
    fake.shipment(NUMBER).addEvent({ eventId: 'b' });
    advance(10_000);
    expect(readEventIds(fake)).toEqual([['a'], ['b']]);
  });

  it('no tracker, an archived tracker, or no registered URL → no push is queued', async () => {
    const { fake, createId, call } = makeFake();
    fake.shipment(OTHER_NUMBER).addEvent();
    await call('PATCH', `/trackers/${await createId()}`, { isSubscribed: false });
    fake.shipment(NUMBER).addEvent().proveDelivery();
    expect(fake.webhooks.pending).toEqual([]);
    const silent = makeFake({ webhooks: false });
    await silent.create();
    silent.fake.shipment(NUMBER).addEvent().proveDelivery();
    expect(silent.fake.webhooks.pending).toEqual([]);
  });

  it('historyLimit 1 and two events → both are queued, one is kept in the history and resent', async () => {
    const { fake, call, createId } = makeFake({ historyLimit: 1 });
    const id = await createId();
    fake.shipment(NUMBER).addEvent({ eventId: 'a' }).addEvent({ eventId: 'b' });
    expect([readEventIds(fake), fake.webhooks.history.length]).toEqual([[['a'], ['b']], 1]);
    for (const push of fake.webhooks.take()) fake.webhooks.record(push, { status: 200, succeeded: true });
    const resent = await call('POST', `/trackers/${id}/webhook-events/resend`);
    expect([resent.body.data.summary.totalResent, readEventIds(fake)]).toEqual([1, [['b']]]);
  });

  it('proveDelivery → a push of topic tracking/pod without events, whose courier is the source of the events', async () => {
    const { fake, create } = makeFake();
    await create();
    const shipment = fake.shipment(NUMBER).deliver({ courierCode: 'fr-post' });
    fake.webhooks.take();
    shipment.proveDelivery();
    const content = { type: 'application/pdf', text: null, downloadUrl: expect.stringMatching(/\.pdf$/) };
    const data = { status: 'found', courier: 'fr-post-tracking', content };
    expect(fake.webhooks.pending).toMatchObject([{ item: { metadata: { topic: 'tracking/pod' }, data } }]);
    expect(fake.webhooks.pending[0]?.item).not.toHaveProperty('events');
  });

  it.each<[type: string, content: object]>([
    ['text/plain', { text: expect.stringMatching(/\w/), downloadUrl: null }],
    ['text/html', { text: expect.stringMatching(/<\w+>/), downloadUrl: null }],
    ['application/pdf', { text: null, downloadUrl: expect.stringMatching(/^https:.*\.pdf$/) }],
    ['image/png', { text: null, downloadUrl: expect.stringMatching(/^https:.*\.png$/) }],
    ['image/jpeg', { text: null, downloadUrl: expect.stringMatching(/^https:.*\.jpg$/) }],
  ])('proveDelivery with the type %s → the text or the file of this type', async (type, content) => {
    const { fake, create } = makeFake();
    await create();
    fake.shipment(NUMBER).proveDelivery({ content: { type } });
    expect(fake.webhooks.pending[0]?.item).toMatchObject({ data: { content: { type, ...content } } });
  });

  it('proveDelivery for a number of two trackers → the source of the courier of each tracker', async () => {
    const { fake, create } = makeFake();
    await create({ courierCode: 'fr-post' });
    await create({ courierCode: 'nl-post' });
    fake.shipment(NUMBER).proveDelivery();
    const couriers = fake.webhooks.pending.map(({ item }) => Object(item).data.courier);
    expect(couriers).toEqual(['fr-post-tracking', 'nl-post-tracking']);
  });

  it('proveDelivery, unavailable → no content; fields of the test → kept', async () => {
    const { fake, create } = makeFake();
    await create();
    const own = { type: 'text/plain', text: 'Signed: ADA', downloadUrl: null };
    fake
      .shipment(NUMBER)
      .proveDelivery({ status: 'unavailable' })
      .proveDelivery({ content: own, courier: 'x' });
    expect(fake.webhooks.pending.map(({ item }) => Object(item).data)).toEqual([
      { status: 'unavailable', courier: 'us-post-tracking', content: null },
      { status: 'found', courier: 'x', content: own },
    ]);
  });
});

describe('POST /trackers/{trackerId}/webhook-events/resend', () => {
  async function withPushes(options: Parameters<typeof makeFake>[0] = {}) {
    const made = makeFake(options);
    const id = await made.createId({ clientTrackerId: 'mine' });
    made.fake.shipment(NUMBER).addEvent({ eventId: 'a' }).addEvent({ eventId: 'b' });
    made.fake.webhooks.take();
    const resend = async (path = id) => {
      const url = `/trackers/${path}`.replace(/(\?|$)/, '/webhook-events/resend$1');
      const { status, body } = await made.call('POST', url);
      return [status, body.data.summary.totalResent];
    };
    return { ...made, resend };
  }

  it('two resends, by either id → all pushes are queued again each time, with the same events and message ids', async () => {
    const { fake, resend } = await withPushes();
    const sent = fake.webhooks.history.map(({ item }) => item);
    for (const path of ['mine?searchBy=clientTrackerId', undefined]) {
      expect(await resend(path)).toEqual([201, 2]);
      expect(readEventIds(fake)).toEqual([['a'], ['b']]);
      expect(fake.webhooks.take().map(({ item }) => item)).toEqual(sent);
    }
  });

  it.each([
    [false, 5],
    [true, 4],
  ])(
    'two more events (groupEvents: %s) and a proof → totalResent counts the events',
    async (groupEvents, pushes) => {
      const { fake, resend } = await withPushes({ groupEvents });
      fake.shipment(NUMBER).addEvent({}, {}).proveDelivery();
      fake.webhooks.take();
      expect([await resend(), fake.webhooks.pending.length]).toEqual([[201, 4], pushes]);
    },
  );

  it('pushes of another tracker → not sent again', async () => {
    const { fake, createId, resend } = await withPushes();
    await createId({ trackingNumber: OTHER_NUMBER });
    fake.shipment(OTHER_NUMBER).addEvent({ eventId: 'other' });
    fake.webhooks.take();
    expect(await resend()).toEqual([201, 2]);
    expect(readEventIds(fake)).toEqual([['a'], ['b']]);
  });

  it('a push that still waits to be sent → not queued twice', async () => {
    const { fake, resend } = await withPushes();
    fake.shipment(NUMBER).addEvent({ eventId: 'c' });
    expect(await resend()).toEqual([201, 2]);
    expect(readEventIds(fake)).toEqual([['c'], ['a'], ['b']]);
  });

  it('no URL registered → 400 webhook_url_missing', async () => {
    const { call, createId } = makeFake({ webhooks: false });
    const response = await call('POST', `/trackers/${await createId()}/webhook-events/resend`);
    expect(refusal(response)).toEqual([400, 'webhook_url_missing']);
  });
});
