import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { ConfigurationError } from '../../../src/errors.ts';
import { createWebhookSender, type WebhookSenderOptions } from '../../../src/testing/index.ts';
import { DAY_MS, makeFake, NUMBER } from '../make-fake.ts';

const SECOND_MS = 1000;

type Receiver = (request: Request) => Response | Promise<Response>;

function respond(status: number, headers: Record<string, string> = {}): Receiver {
  return () => new Response(null, { status, headers });
}
const accept = respond(204);
const refuse = respond(500);
/** Refuses the push of event `0`, and accepts all others. */
const refuseFirst: Receiver = async (request) =>
  (await request.text()).includes('"eventId":"0"') ? refuse(request) : accept(request);

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
  const readHistory = async () =>
    (await made.call('GET', `/trackers/${id}/webhook-history/download`)).body.webhooks;
  return { ...made, id, queue, sender, bodies, requests, sentIds, readHistory };
}

describe('sender.flush', () => {
  it('three pushes → sent once each, in order, as JSON, one item per request, without a secret', async () => {
    const { sender, sentIds, bodies, requests } = await makeSender(accept, 3);
    const report = await sender.flush();
    expect(sentIds()).toEqual(['0', '1', '2']);
    expect(bodies[0]).toMatchObject({ trackings: [{ events: [{ eventId: '0' }] }] });
    const { headers } = requests[0] ?? expect.fail();
    expect([headers.get('content-type'), headers.has('authorization')]).toEqual(['application/json', false]);
    expect(report).toMatchObject({ items: 3, accepted: 3, lost: 0, sent: [{}, {}, {}] });
    expect(await sender.flush()).toEqual({ items: 0, accepted: 0, lost: 0, sent: [] });
  });

  it('a fake that was reset after the sender was made → later pushes are sent', async () => {
    const { fake, sender, sentIds, createId, queue } = await makeSender(accept, 1);
    fake.reset();
    await createId();
    queue('5');
    await sender.flush();
    expect(sentIds()).toEqual(['5']);
  });

  it('a push that is queued while another push is handled → sent by the same flush', async () => {
    const { sender, sentIds, queue } = await makeSender((request) => {
      if (sentIds().length === 1) queue('7');
      return accept(request);
    });
    expect(await sender.flush()).toMatchObject({ items: 2, accepted: 2, lost: 0 });
    expect(sentIds()).toEqual(['0', '7']);
  });

  it('duplicates 2 and a secret → three requests with the same body and the secret', async () => {
    const { sender, bodies, requests } = await makeSender(accept, 1, { duplicates: 2, secret: 'hush' });
    expect(await sender.flush()).toMatchObject({ items: 1, accepted: 1 });
    expect(bodies).toEqual([bodies[0], bodies[0], bodies[0]]);
    for (const { headers } of requests) expect(headers.get('authorization')).toBe('Bearer hush');
  });

  it('shuffle → another order, the same one for the same seed', async () => {
    const sendShuffled = async (seed: number) => {
      const { sender, sentIds } = await makeSender(accept, 10, { shuffle: true, seed });
      await sender.flush();
      return sentIds();
    };
    const order = await sendShuffled(1);
    expect(order).not.toEqual([...order].sort());
    expect([...order].sort()).toEqual(['0', '1', '2', '3', '4', '5', '6', '7', '8', '9']);
    expect(await sendShuffled(1)).toEqual(order);
    expect(await sendShuffled(2)).not.toEqual(order);
  });

  it.each([1, 4])('concurrency %i → that many requests at a time', async (concurrency) => {
    let open = 0;
    let highest = 0;
    const slow: Receiver = async (request) => {
      open += 1;
      highest = Math.max(highest, open);
      for (let turn = 0; turn < 50; turn += 1) await null;
      open -= 1;
      return accept(request);
    };
    const { sender } = await makeSender(slow, 9, { concurrency });
    await sender.flush();
    expect(highest).toBe(concurrency);
  });

  it('itemsPerRequest 10, events and a proof of delivery → the proof comes alone, in its place', async () => {
    const { fake, sender, bodies, queue } = await makeSender(accept, 2, { itemsPerRequest: 10 });
    fake.shipment(NUMBER).proveDelivery().proveDelivery();
    queue('2');
    queue('3');
    await sender.flush();
    const topics = bodies.map((body) =>
      Object(body).trackings.map((item: object) => Object(item).metadata.topic),
    );
    const [events, proof] = ['tracking/events', 'tracking/pod'];
    expect(topics).toEqual([[events, events], [proof], [proof], [events, events]]);
  });

  it('itemsPerRequest 2 and three pushes → two requests, and one history entry for each request', async () => {
    const { sender, bodies, readHistory } = await makeSender(accept, 3, { itemsPerRequest: 2 });
    await sender.flush();
    expect(bodies).toMatchObject([{ trackings: [{}, {}] }, { trackings: [{}] }]);
    expect((await readHistory())?.map((entry) => Object(entry).requestBody)).toEqual(bodies.toReversed());
  });
});

describe('a receiver that does not accept', () => {
  it('no until2xx → one attempt, the item is lost, the attempt is in the history', async () => {
    const { sender, readHistory } = await makeSender(refuse);
    const sent = [{ status: 500, attempt: 1 }];
    expect(await sender.flush()).toMatchObject({ items: 1, accepted: 0, lost: 1, sent });
    expect(await readHistory()).toMatchObject([{ status: 'failed', responseStatusCode: '500' }]);
  });

  it('until2xx with two attempts → given up after two attempts; onSent gets each attempt with its pushes', async () => {
    const told: unknown[] = [];
    const { sender } = await makeSender(refuse, 1, {
      until2xx: { maxAttempts: 2 },
      onSent: ({ attempt, status, succeeded }, pushes) =>
        told.push([attempt, status, succeeded, pushes.length]),
    });
    expect(await sender.flush()).toMatchObject({ lost: 1 });
    expect(told).toEqual([
      [1, 500, false, 1],
      [2, 500, false, 1],
    ]);
  });

  it('until2xx at speed 1 → the first wait is 12 minutes; waits grow by 1.6 up to 12 hours', async () => {
    vi.useFakeTimers();
    const times: number[] = [];
    const until2xx = { speed: 1 };
    const { sender } = await makeSender(refuse, 1, { until2xx, onSent: () => times.push(Date.now()) });
    const report = sender.flush();
    await vi.advanceTimersByTimeAsync(7 * DAY_MS);
    expect(await report).toMatchObject({ lost: 1, sent: { length: 20 } });
    const minutes = times.slice(1).map((time, index) => (time - (times[index] ?? 0)) / (60 * SECOND_MS));
    const growing = [12, 19.2, 30.72, 49.152, 78.6432, 125.829, 201.327, 322.123, 515.396];
    expect(minutes.slice(0, 9)).toEqual(growing.map((wait) => expect.closeTo(wait, 2)));
    expect(minutes.slice(9)).toEqual(Array(10).fill(720));
  });

  it('until2xx, a receiver that is down for 20 seconds → accepted, because the 20 attempts take half a minute', async () => {
    vi.useFakeTimers();
    const startsAt = Date.now() + 20 * SECOND_MS;
    const receiver: Receiver = (request) => (Date.now() < startsAt ? refuse : accept)(request);
    const { sender } = await makeSender(receiver, 1, { until2xx: true });
    const report = sender.flush();
    await vi.advanceTimersByTimeAsync(30 * SECOND_MS);
    expect(await report).toMatchObject({ accepted: 1, lost: 0 });
  });

  it.each<[string, number, Receiver]>([
    ['200 that says success: false', 0, () => Response.json({ success: false })],
    ['200 that says success: "false"', 0, () => Response.json({ success: 'false', id: 7 })],
    ['202 that says success: "false"', 0, () => Response.json({ success: 'false' }, { status: 202 })],
    ['200 that says success: "false" as plain text', 0, () => new Response('{"success":"false"}')],
    ['200 that says success: "true"', 1, () => Response.json({ success: 'true' })],
    ['200 that says success: null', 1, () => Response.json({ success: null })],
    ['200 whose data says success: false', 1, () => Response.json({ data: { success: false } })],
    ['a redirect', 0, respond(302)],
    ['an error it throws', 0, () => Promise.reject(new Error('boom'))],
    ['200 with text', 1, () => new Response('ok')],
    ['202 that says success: true', 1, () => Response.json({ success: true }, { status: 202 })],
    ['200 with JSON null', 1, () => Response.json(null)],
  ])('%s → %i accepted', async (_, accepted, receiver) => {
    const { sender } = await makeSender(receiver);
    expect(await sender.flush()).toMatchObject({ accepted, lost: 1 - accepted });
  });

  it('a first push that is accepted after the second → the history has the newest attempt first', async () => {
    vi.useFakeTimers({ now: Date.UTC(2026, 2, 10, 12) });
    const statuses = [500, 204, 202];
    const receiver: Receiver = (request) => {
      clock.nowMs += 1000;
      return respond(statuses.shift() ?? 500)(request);
    };
    const { sender, clock, readHistory } = await makeSender(receiver, 2, { until2xx: { speed: 1 } });
    const report = sender.flush();
    await vi.advanceTimersByTimeAsync(12 * 60_000);
    await report;
    expect(await readHistory()).toMatchObject(
      ['202', '204', '500'].map((responseStatusCode) => ({ responseStatusCode })),
    );
  });

  it('no response within timeoutMs → aborted and not accepted; no timer is left', async () => {
    vi.useFakeTimers();
    const signals: AbortSignal[] = [];
    const silent: Receiver = (request) => {
      signals.push(request.signal);
      return new Promise(() => {});
    };
    const { sender, readHistory } = await makeSender(silent, 1, { timeoutMs: 15_000 });
    const report = sender.flush();
    await vi.advanceTimersByTimeAsync(15_000);
    expect(await report).toMatchObject({ lost: 1, sent: [{ status: null, succeeded: false }] });
    expect([signals[0]?.aborted, vi.getTimerCount()]).toEqual([true, 0]);
    const failed = { status: 'failed', responseStatusCode: null, responseBody: null };
    expect(await readHistory()).toMatchObject([failed]);
  });
});

describe('sender.probe', () => {
  it.each([
    [200, true],
    [204, false],
    [405, false],
  ])('%i to HEAD → %s, with neither body nor content type', async (status, isThere) => {
    const { sender, requests } = await makeSender(respond(status));
    expect(await sender.probe()).toBe(isThere);
    const [{ method, body, headers } = expect.fail()] = requests;
    expect([method, body, headers.has('content-type')]).toEqual(['HEAD', null, false]);
  });
});

describe('sender.start', () => {
  it('a push queued later → sent at the next interval; after stop → no timer is left', async () => {
    vi.useFakeTimers();
    const { sender, queue, sentIds } = await makeSender(accept, 0);
    const stop = sender.start({ everyMs: 100 });
    await vi.advanceTimersByTimeAsync(500);
    queue('3');
    await vi.advanceTimersByTimeAsync(100);
    expect(sentIds()).toEqual(['3']);
    await stop();
    queue('4');
    await vi.advanceTimersByTimeAsync(500);
    expect([sentIds(), vi.getTimerCount()]).toEqual([['3'], 0]);
  });

  it('a push that waits for its next attempt → later pushes are sent meanwhile, and stop waits for that attempt', async () => {
    vi.useFakeTimers();
    const until2xx = { maxAttempts: 2, speed: 1 };
    const { sender, queue, sentIds } = await makeSender(refuseFirst, 1, { until2xx });
    const stop = sender.start({ everyMs: 100 });
    await vi.advanceTimersByTimeAsync(100);
    queue('1');
    await vi.advanceTimersByTimeAsync(100);
    expect(sentIds()).toEqual(['0', '1']);
    const stopped = stop();
    await vi.advanceTimersByTimeAsync(12 * 60_000);
    await stopped;
    expect(sentIds()).toEqual(['0', '1', '0']);
  });

  const fail = () => {
    throw new Error('no disk');
  };
  it.each<[string, () => void]>([
    ['throws', fail],
    ['rejects', async () => fail()],
  ])('an onSent that %s → reported on the console, and the sender goes on', async (_title, onSent) => {
    vi.useFakeTimers();
    const write = vi.spyOn(console, 'error').mockImplementation(() => {});
    onTestFinished(() => write.mockRestore());
    const { sender, queue, sentIds } = await makeSender(accept, 1, { onSent });
    const stop = sender.start();
    await vi.advanceTimersByTimeAsync(100);
    queue('1');
    await vi.advanceTimersByTimeAsync(100);
    await stop();
    const message = '[tracking-client] `onSent` of the webhook sender failed: no disk';
    expect(write.mock.calls).toEqual(Array(2).fill([message, expect.any(Error)]));
    expect(sentIds()).toEqual(['0', '1']);
  });
});

describe('createWebhookSender with invalid options', () => {
  it.each([
    ['a URL of another scheme', { target: 'ftp://localhost/' }],
    ['a scheme that ends with http', { target: 'xhttp://localhost/' }],
    ['0 attempts', { until2xx: { maxAttempts: 0 } }],
    ['an unknown option of until2xx', { until2xx: { delayMs: 500 } }],
    ['until2xx that is text', { until2xx: 'yes' }],
    ['a misspelt option', { duplicate: 1 }],
    ['an empty secret', { secret: '' }],
    ['a number as secret', { secret: 5 }],
    ['a fake without webhooks', { fake: {} }],
  ])('%s → ConfigurationError', (_, options) => {
    // A caller without types could pass this.
    const create = createWebhookSender as (options: object) => unknown;
    expect(() => create({ target: accept, fake: makeFake().fake, ...options })).toThrow(ConfigurationError);
  });

  it('a target without a scheme → ConfigurationError that says how a URL begins', () => {
    const create = () => createWebhookSender({ target: 'localhost:3000/webhooks', fake: makeFake().fake });
    expect(create).toThrow(
      'Expected `target` to be a function or a URL that begins with http:// or https://',
    );
  });

  it('a misspelt option of start → ConfigurationError that lists the known options', async () => {
    const { sender } = await makeSender(accept);
    const start = () => Reflect.apply(sender.start, sender, [{ everMs: 5 }]);
    expect(start).toThrow(/`everMs`.*everyMs/);
  });
});
