import { describe, expect, it, vi } from 'vitest';
import { ConfigurationError } from '../../../src/errors.ts';
import { createWebhookSender, type WebhookSenderOptions } from '../../../src/testing/index.ts';
import { settled } from '../../support/settled.ts';
import { makeFake, NUMBER } from '../make-fake.ts';

type Receiver = (request: Request) => Response | Promise<Response>;
const accept: Receiver = () => new Response(null, { status: 204 });

/** A fake with events `0`, `1`, … waiting to be pushed, and a sender to a receiver. */
async function makeSender(receiver: Receiver, count = 1, options: Partial<WebhookSenderOptions> = {}) {
  const made = makeFake();
  const id = await made.createId({ clientTrackerId: 'mine' });
  const queue = (eventId: string) => made.fake.shipment(NUMBER).addEvent({ eventId });
  for (let index = 0; index < count; index += 1) queue(String(index));
  const bodies: unknown[] = [];
  const requests: Request[] = [];
  const target: Receiver = async (request) => {
    requests.push(request.clone());
    if (request.method === 'POST') bodies.push(await request.clone().json());
    return receiver(request);
  };
  const sender = createWebhookSender({ target, fake: made.fake, ...options });
  const sentIds = () => bodies.map((body) => /"eventId":"(\d+)"/.exec(JSON.stringify(body))?.[1]);
  return { ...made, id, queue, sender, bodies, requests, sentIds };
}

describe('sender.flush', () => {
  it('three pushes → sent in order, one item a request, each once', async () => {
    const { sender, sentIds, bodies } = await makeSender(accept, 3);
    const report = await sender.flush();
    expect(sentIds()).toEqual(['0', '1', '2']);
    expect(bodies[0]).toMatchObject({ trackings: [{ events: [{ eventId: '0' }] }] });
    expect(report).toMatchObject({ items: 3, accepted: 3, lost: 0 });
    expect(report.sent).toHaveLength(3);
  });

  it('nothing queued → nothing is sent', async () => {
    const { sender } = await makeSender(accept, 0);
    expect(await sender.flush()).toEqual({ items: 0, accepted: 0, lost: 0, sent: [] });
  });

  it('a second flush → sends nothing twice', async () => {
    const { sender, sentIds } = await makeSender(accept, 1);
    await sender.flush();
    await sender.flush();
    expect(sentIds()).toEqual(['0']);
  });

  it('a fake that was reset after the sender was made → what is queued from then on is sent', async () => {
    const { fake, sender, sentIds, createId } = await makeSender(accept, 1);
    fake.reset();
    await createId();
    fake.shipment(NUMBER).addEvent({ eventId: '5' });
    await sender.flush();
    expect(sentIds()).toEqual(['5']);
  });

  it('a push that is queued while another is handled → sent too', async () => {
    const { sender, sentIds, queue } = await makeSender((request) => {
      if (sentIds().length === 1) queue('7');
      return accept(request);
    });
    await sender.flush();
    expect(sentIds()).toEqual(['0', '7']);
  });

  it('onSent → told of each request and what it held, also of a refused one', async () => {
    const told: unknown[] = [];
    const { sender } = await makeSender(() => new Response(null, { status: 500 }), 2, {
      until2xx: { maxAttempts: 2, delayMs: 0 },
      onSent: ({ attempt, status, succeeded }, pushes) =>
        told.push([
          attempt,
          status,
          succeeded,
          pushes.map(({ item }) => 'events' in item && item.events.length),
        ]),
    });
    await sender.flush();
    expect(told).toEqual([
      [1, 500, false, [1]],
      [1, 500, false, [1]],
      [2, 500, false, [1]],
      [2, 500, false, [1]],
    ]);
  });

  it('a secret → sent as a bearer token; JSON says it is JSON', async () => {
    const { sender, requests } = await makeSender(accept, 1, { secret: 'hush' });
    await sender.flush();
    expect(requests[0]?.headers.get('authorization')).toBe('Bearer hush');
    expect(requests[0]?.headers.get('content-type')).toBe('application/json');
  });

  it('no secret → no authorization', async () => {
    const { sender, requests } = await makeSender(accept);
    await sender.flush();
    expect(requests[0]?.headers.has('authorization')).toBe(false);
  });

  it('duplicates 2 → three requests with the same body, one item', async () => {
    const { sender, bodies } = await makeSender(accept, 1, { duplicates: 2 });
    const report = await sender.flush();
    expect(report).toMatchObject({ items: 1, accepted: 1 });
    expect(bodies).toHaveLength(3);
    expect(bodies[1]).toEqual(bodies[0]);
  });

  it('shuffle → another order, the same one for the same seed', async () => {
    const orderOf = async (seed: number) => {
      const { sender, sentIds } = await makeSender(accept, 10, { shuffle: true, seed });
      await sender.flush();
      return sentIds();
    };
    const order = await orderOf(1);
    expect(order).not.toEqual([...order].sort());
    expect([...order].sort()).toEqual(['0', '1', '2', '3', '4', '5', '6', '7', '8', '9']);
    expect(await orderOf(1)).toEqual(order);
    expect(await orderOf(2)).not.toEqual(order);
  });

  it.each([1, 4])('concurrency %i → as many requests at a time', async (concurrency) => {
    let open = 0;
    let most = 0;
    const slow: Receiver = async (request) => {
      open += 1;
      most = Math.max(most, open);
      for (let turn = 0; turn < 50; turn += 1) await null;
      open -= 1;
      return accept(request);
    };
    const { sender } = await makeSender(slow, 9, { concurrency });
    await sender.flush();
    expect(most).toBe(concurrency);
  });

  it('itemsPerRequest 2 → two items a request, the rest in the last', async () => {
    const { sender, bodies } = await makeSender(accept, 3, { itemsPerRequest: 2 });
    await sender.flush();
    expect(bodies).toMatchObject([{ trackings: [{}, {}] }, { trackings: [{}] }]);
  });

  it('shape flat → trackerId, clientTrackerId and events', async () => {
    const { sender, bodies, id } = await makeSender(accept, 1, { shape: 'flat' });
    await sender.flush();
    expect(bodies).toEqual([
      { trackerId: id, clientTrackerId: 'mine', events: [expect.objectContaining({ eventId: '0' })] },
    ]);
  });
});

it.each([
  ['enveloped', { trackings: [{ tracker: { clientTrackerId: 'mine' } }] }],
  ['flat', { clientTrackerId: 'mine', events: [{ eventId: '0' }] }],
] as const)('identifyBy clientTrackerId, %s → no trackerId is sent', async (shape, body) => {
  const { sender, bodies, id } = await makeSender(accept, 1, { shape, identifyBy: 'clientTrackerId' });
  await sender.flush();
  expect(bodies).toMatchObject([body]);
  expect(JSON.stringify(bodies)).not.toContain(id);
});

it('identifyBy clientTrackerId and a tracker without one → its trackerId is sent', async () => {
  const { sender, bodies, fake, createId } = await makeSender(accept, 0, { identifyBy: 'clientTrackerId' });
  const trackerId = await createId({ shipmentReference: 'no id of mine' });
  fake.shipment({ trackerId }).addEvent();
  await sender.flush();
  expect(bodies).toMatchObject([{ trackings: [{ tracker: { trackerId } }] }]);
});

it('shape flat and a proof of delivery, which that shape does not have → sent enveloped', async () => {
  const { sender, bodies, fake } = await makeSender(accept, 0, { shape: 'flat' });
  fake.shipment(NUMBER).proveDelivery();
  await sender.flush();
  expect(bodies).toMatchObject([{ trackings: [{ metadata: { topic: 'tracking/pod' } }] }]);
});

describe('a receiver that does not accept', () => {
  const refuse: Receiver = () => new Response('no', { status: 500 });

  it('no until2xx → one attempt, the item is lost', async () => {
    const { sender } = await makeSender(refuse);
    expect(await sender.flush()).toMatchObject({
      items: 1,
      accepted: 0,
      lost: 1,
      sent: [{ status: 500, attempt: 1 }],
    });
  });

  it('until2xx and a receiver that accepts the third attempt → three attempts', async () => {
    let attempts = 0;
    const third: Receiver = (request) => {
      attempts += 1;
      return attempts < 3 ? refuse(request) : accept(request);
    };
    const { sender } = await makeSender(third, 1, { until2xx: { delayMs: 0 } });
    const { sent, accepted } = await sender.flush();
    expect(sent.map(({ attempt, status }) => [attempt, status])).toEqual([
      [1, 500],
      [2, 500],
      [3, 204],
    ]);
    expect(accepted).toBe(1);
  });

  it('until2xx and a receiver that never accepts → given up after 20 attempts', async () => {
    const { sender } = await makeSender(refuse, 1, { until2xx: { delayMs: 0 } });
    const report = await sender.flush();
    expect([report.sent.length, report.lost]).toEqual([20, 1]);
  });

  it('a push that waits for its repeat → the next one goes meanwhile', async () => {
    vi.useFakeTimers();
    try {
      const refuseFirst: Receiver = async (request) =>
        (await request.text()).includes('"eventId":"0"') ? refuse(request) : accept(request);
      const { sender, sentIds } = await makeSender(refuseFirst, 2, {
        until2xx: { maxAttempts: 2, speed: 1 },
      });
      const report = sender.flush();
      await vi.advanceTimersByTimeAsync(14_999);
      expect(sentIds()).toEqual(['0', '1']);
      await vi.advanceTimersByTimeAsync(1);
      expect(sentIds()).toEqual(['0', '1', '0']);
      expect(await report).toMatchObject({ accepted: 1, lost: 1 });
    } finally {
      vi.useRealTimers();
    }
  });

  it.each([
    ['in seconds', () => '60'],
    ['as a date', () => new Date(Date.now() + 60_000).toUTCString()],
  ])('Retry-After %s at speed 10 → a tenth of it', async (_form, retryAfter) => {
    vi.useFakeTimers({ now: Date.UTC(2026, 2, 10, 12) });
    try {
      const busy: Receiver = () =>
        new Response(null, { status: 503, headers: { 'retry-after': retryAfter() } });
      const { sender, requests } = await makeSender(busy, 1, { until2xx: { maxAttempts: 2, speed: 10 } });
      const report = sender.flush();
      await vi.advanceTimersByTimeAsync(5999);
      expect(requests).toHaveLength(1);
      await vi.advanceTimersByTimeAsync(1);
      expect(requests).toHaveLength(2);
      await report;
    } finally {
      vi.useRealTimers();
    }
  });

  it('until2xx true → the days of the service take about two seconds', async () => {
    vi.useFakeTimers();
    try {
      const times: number[] = [];
      const { sender } = await makeSender(refuse, 1, {
        until2xx: true,
        onSent: () => times.push(Date.now()),
      });
      const report = sender.flush();
      await vi.advanceTimersByTimeAsync(10_000);
      await report;
      const tookMs = (times.at(-1) ?? 0) - (times[0] ?? 0);
      expect([times.length, Math.round(tookMs / 1000)]).toEqual([20, 2]);
    } finally {
      vi.useRealTimers();
    }
  });

  it('maxAttempts 2 → given up after 2', async () => {
    const { sender } = await makeSender(refuse, 1, { until2xx: { maxAttempts: 2, delayMs: 0 } });
    expect((await sender.flush()).sent).toHaveLength(2);
  });

  it.each<[string, Receiver]>([
    ['200 that says success: false', () => Response.json({ success: false })],
    ['a redirect', () => new Response(null, { status: 302 })],
    ['an error it throws', () => Promise.reject(new Error('boom'))],
  ])('%s → not accepted', async (_, receiver) => {
    const { sender } = await makeSender(receiver);
    expect((await sender.flush()).lost).toBe(1);
  });

  it.each<[string, Receiver]>([
    ['200 with text', () => new Response('ok')],
    ['202 that says success: true', () => Response.json({ success: true }, { status: 202 })],
    ['200 with JSON null', () => Response.json(null)],
  ])('%s → accepted', async (_, receiver) => {
    const { sender } = await makeSender(receiver);
    expect((await sender.flush()).accepted).toBe(1);
  });

  it('an attempt → in the webhook history of the tracker', async () => {
    const { sender, fake } = await makeSender(refuse);
    await sender.flush();
    expect(fake.webhooks.history[0]?.attempts).toMatchObject([{ status: 500, succeeded: false }]);
  });

  it('a first push that is accepted after the second → history has the newest try first', async () => {
    vi.useFakeTimers({ now: Date.UTC(2026, 2, 10, 12) });
    try {
      const statuses = [500, 204, 202];
      const { sender, fake, call, clock, id } = await makeSender(
        () => {
          clock.nowMs += 1000;
          return new Response(null, { status: statuses.shift() ?? 500 });
        },
        2,
        { until2xx: { speed: 1 } },
      );
      const report = sender.flush();
      await vi.advanceTimersByTimeAsync(15_000);
      await report;
      const { body } = await call('GET', `/trackers/${id}/webhook-history/download`);
      expect(body.webhooks).toMatchObject(
        ['202', '204', '500'].map((responseStatusCode) => ({ responseStatusCode })),
      );
      expect(fake.webhooks.history.map(({ attempts }) => attempts.length)).toEqual([2, 1]);
    } finally {
      vi.useRealTimers();
    }
  });

  it('two pushes of a tracker in one request → one entry of its history', async () => {
    const { sender, call, id } = await makeSender(accept, 2, { itemsPerRequest: 2 });
    await sender.flush();
    const { body } = await call('GET', `/trackers/${id}/webhook-history/download`);
    expect(body.webhooks).toMatchObject([{ requestBody: { trackings: [{}, {}] } }]);
    expect(body.webhooks).toHaveLength(1);
  });

  it('a Retry-After of 60 days, longer than a timer holds → no attempt right after', async () => {
    vi.useFakeTimers();
    try {
      const busy: Receiver = () => new Response(null, { status: 503, headers: { 'retry-after': '5184000' } });
      const { sender, requests } = await makeSender(busy, 1, { until2xx: { maxAttempts: 2, speed: 1 } });
      const report = sender.flush();
      await vi.advanceTimersByTimeAsync(24 * 86_400_000);
      expect(requests).toHaveLength(1);
      await vi.advanceTimersByTimeAsync(86_400_000);
      await report;
    } finally {
      vi.useRealTimers();
    }
  });

  it('no answer within timeoutMs → aborted and not accepted', async () => {
    vi.useFakeTimers();
    try {
      const signals: AbortSignal[] = [];
      const silent: Receiver = (request) => {
        signals.push(request.signal);
        return new Promise(() => {});
      };
      const { sender } = await makeSender(silent, 1, { timeoutMs: 15_000 });
      const report = sender.flush();
      await vi.advanceTimersByTimeAsync(15_000);
      expect(await report).toMatchObject({ lost: 1, sent: [{ status: null, succeeded: false }] });
      expect(signals[0]?.aborted).toBe(true);
    } finally {
      vi.useRealTimers();
    }
  });

  it('an answer in time → no timer is left', async () => {
    vi.useFakeTimers();
    try {
      const { sender } = await makeSender(accept);
      await sender.flush();
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });
});

describe('sender.probe', () => {
  it('200 to HEAD → true, with no body', async () => {
    const { sender, requests } = await makeSender(() => new Response(null, { status: 200 }));
    expect(await sender.probe()).toBe(true);
    expect([requests[0]?.method, requests[0]?.body]).toEqual(['HEAD', null]);
  });

  it('405 to HEAD → false', async () => {
    const { sender } = await makeSender(() => new Response(null, { status: 405 }));
    expect(await sender.probe()).toBe(false);
  });
});

describe('sender.start', () => {
  it('a push queued later → sent at the next look, and reported; stopped → no timer is left', async () => {
    vi.useFakeTimers();
    try {
      const { sender, queue, sentIds } = await makeSender(accept, 0);
      const reports: number[] = [];
      const stop = sender.start({ everyMs: 100, onReport: ({ items }) => reports.push(items) });
      await vi.advanceTimersByTimeAsync(500);
      queue('3');
      await vi.advanceTimersByTimeAsync(100);
      expect([sentIds(), reports]).toEqual([['3'], [1]]);
      await stop();
      queue('4');
      await vi.advanceTimersByTimeAsync(500);
      expect(sentIds()).toEqual(['3']);
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });
});

describe('sender.start with callbacks that fail', () => {
  const fail = () => {
    throw new Error('no disk');
  };
  const rejectLater = async () => fail();

  it.each<[string, { onSent?: () => unknown; onReport?: () => unknown }]>([
    ['onSent throws', { onSent: fail }],
    ['onSent rejects', { onSent: rejectLater }],
    ['onReport throws', { onReport: fail }],
    ['onReport rejects', { onReport: rejectLater }],
  ])('%s → told to the console, the sender goes on and the process lives', async (_title, callbacks) => {
    vi.useFakeTimers();
    const write = vi.spyOn(console, 'error').mockImplementation(() => {});
    const unhandled = vi.fn();
    process.on('unhandledRejection', unhandled);
    try {
      const { onSent, onReport } = callbacks;
      const { sender, queue, sentIds } = await makeSender(accept, 1, onSent === undefined ? {} : { onSent });
      const stop = sender.start({ everyMs: 100, ...(onReport === undefined ? {} : { onReport }) });
      await vi.advanceTimersByTimeAsync(100);
      queue('1');
      await vi.advanceTimersByTimeAsync(100);
      await stop();
      expect(sentIds()).toEqual(['0', '1']);
      expect(write).toHaveBeenCalledTimes(2);
      expect(write).toHaveBeenCalledWith(
        '[tracking-client] A callback of the webhook sender failed: no disk',
        expect.any(Error),
      );
      vi.useRealTimers();
      await settled();
      expect(unhandled).not.toHaveBeenCalled();
    } finally {
      process.off('unhandledRejection', unhandled);
      vi.useRealTimers();
      write.mockRestore();
    }
  });
});

describe('sender.start and a receiver that is down', () => {
  it('a push that waits hours for its repeat → later ones are sent meanwhile', async () => {
    vi.useFakeTimers();
    try {
      const refuseFirst: Receiver = async (request) =>
        new Response(null, { status: (await request.text()).includes('"eventId":"0"') ? 500 : 204 });
      const { sender, queue, sentIds } = await makeSender(refuseFirst, 1, {
        until2xx: { maxAttempts: 2, speed: 1 },
      });
      const stop = sender.start({ everyMs: 100 });
      await vi.advanceTimersByTimeAsync(100);
      queue('1');
      await vi.advanceTimersByTimeAsync(100);
      expect(sentIds()).toEqual(['0', '1']);
      await vi.advanceTimersByTimeAsync(15_000);
      await stop();
      expect(sentIds()).toEqual(['0', '1', '0']);
    } finally {
      vi.useRealTimers();
    }
  });
});

describe('sender.start under a steady stream', () => {
  it('a push that is queued by every push → a report after each look', async () => {
    vi.useFakeTimers();
    try {
      const { sender, queue } = await makeSender((request) => {
        queue('7');
        return accept(request);
      });
      const reports: number[] = [];
      const stop = sender.start({ everyMs: 100, onReport: ({ items }) => reports.push(items) });
      await vi.advanceTimersByTimeAsync(300);
      await stop();
      expect(reports).toEqual([1, 1, 1]);
    } finally {
      vi.useRealTimers();
    }
  });
});

describe('createWebhookSender with nonsense', () => {
  it.each([
    ['no URL', { target: 'nowhere' }],
    ['a target that cannot be text', { target: Object.create(null) }],
    ['-1 duplicates', { duplicates: -1 }],
    ['0 at a time', { concurrency: 0 }],
    ['0 items a request', { itemsPerRequest: 0 }],
    ['0 attempts', { until2xx: { maxAttempts: 0 } }],
    ['a negative delay', { until2xx: { delayMs: -1 } }],
    ['a misspelt option', { duplicate: 1 }],
    ['an unknown shape', { shape: 'fla' }],
    ['a misspelt way to repeat', { until2xx: { maxAttempt: 3 } }],
    ['until2xx that is text', { until2xx: 'yes' }],
    ['a speed below 1', { until2xx: { speed: 0.5 } }],
    ['an unknown id', { identifyBy: 'trackingNumber' }],
    ['an empty secret', { secret: '' }],
    ['shuffle that is text', { shuffle: 'no' }],
    ['a seed that is an object', { seed: {} }],
    ['an onSent that is no function', { onSent: 5 }],
    ['no fake', { fake: undefined }],
    ['a fake without webhooks', { fake: {} }],
  ])('%s → ConfigurationError', (_, options) => {
    const { fake } = makeFake();
    // What a caller without types could pass.
    const create = createWebhookSender as (options: object) => unknown;
    expect(() => create({ target: accept, fake, ...options })).toThrow(ConfigurationError);
  });
});
