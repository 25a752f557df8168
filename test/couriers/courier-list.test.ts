import { describe, expect, test } from 'vitest';
import { deferred } from '../support/deferred.ts';
import { BASE_URL, catchRejection, toResponse } from '../support/make-client.ts';
import { useVirtualTime } from '../support/virtual-time.ts';
import { COURIERS, courierService, listOf, makeCourier, readCodes } from './courier-service.ts';

const DAY_MS = 86_400_000;
const BODY = { data: { couriers: COURIERS } };

describe('the list of couriers', () => {
  test('ten thousand finds, at once and later → one request', async () => {
    const { client, requests } = courierService();
    const texts = Array.from({ length: 5_000 }, (_, index) => `post-${index % 7}`);
    await Promise.all(texts.map((text) => client.couriers.find(text)));
    for (const text of texts) await client.couriers.find(text);
    expect(requests.map(({ method, target }) => `${method} ${target}`)).toEqual(['GET /couriers']);
  });

  test('a find within a day → the kept list; a find after a day → a new list', async () => {
    const clock = useVirtualTime();
    const { client, requests } = courierService([
      listOf([makeCourier('a-post')]),
      listOf([makeCourier('b-post')]),
    ]);
    expect(readCodes(await client.couriers.find('post'))).toEqual(['a-post']);
    await clock.advance(DAY_MS - 1);
    expect(readCodes(await client.couriers.find('post'))).toEqual(['a-post']);
    expect(requests).toHaveLength(1);
    await clock.advance(1);
    expect(readCodes(await client.couriers.find('post'))).toEqual(['b-post']);
    expect(requests).toHaveLength(2);
  });

  test('a failure → all who wait get the error, and the next find reads the list again', async () => {
    const { client, requests } = courierService([{ status: 404 }, listOf(COURIERS)]);
    const errors = await Promise.all(['a', 'b'].map((text) => catchRejection(client.couriers.find(text))));
    expect(errors).toMatchObject([{ name: 'NotFoundError' }, { name: 'NotFoundError' }]);
    expect(readCodes(await client.couriers.find('la poste'))).toEqual(['fr-post']);
    expect(requests).toHaveLength(2);
  });

  test('a failure after a day → nothing is kept, not even the old list', async () => {
    const clock = useVirtualTime();
    const { client } = courierService([listOf(COURIERS), { status: 404 }, listOf([])]);
    await client.couriers.find('');
    await clock.advance(DAY_MS);
    expect(await catchRejection(client.couriers.find(''))).toMatchObject({ name: 'NotFoundError' });
    expect(await client.couriers.find('')).toEqual([]);
  });

  test('an abort → ends the wait of its caller with its reason; the others get the list of the same request', async () => {
    const response = deferred<Response>();
    const { client, requests } = courierService(() => response.promise);
    const first = new AbortController();
    const aborted = catchRejection(client.couriers.find('usps', { signal: first.signal }));
    const waiting = client.couriers.find('usps', { signal: new AbortController().signal });
    const reason = new RangeError('enough');
    first.abort(reason);
    expect(await aborted).toBe(reason);
    response.resolve(toResponse({ body: BODY }));
    expect(readCodes(await waiting)).toEqual(['us-post']);
    expect(readCodes(await client.couriers.find('usps'))).toEqual(['us-post']);
    expect(requests).toHaveLength(1);
  });

  test('the only caller aborts, then the request fails → no unhandled rejection, and the next find asks again', async () => {
    const response = deferred<Response>();
    const { client } = courierService([() => response.promise, listOf(COURIERS)]);
    const controller = new AbortController();
    const aborted = catchRejection(client.couriers.find('usps', { signal: controller.signal }));
    controller.abort(new Error('left'));
    await aborted;
    response.resolve(toResponse({ status: 404 }));
    expect(await catchRejection(client.couriers.find('usps'))).toMatchObject({ name: 'NotFoundError' });
    expect(readCodes(await client.couriers.find('usps'))).toEqual(['us-post']);
  });

  test('a signal that has aborted → its reason, and no request', async () => {
    const { client, requests } = courierService();
    const reason = new Error('left');
    const signal = AbortSignal.abort(reason);
    expect(await catchRejection(client.couriers.find('usps', { signal }))).toBe(reason);
    expect(requests).toEqual([]);
  });

  test('a client of withOptions → reads a list of its own, because its service may be another one', async () => {
    const { client, requests } = courierService();
    await client.couriers.find('');
    const other = client.withOptions({ baseUrl: 'https://other.example.test/v1' });
    await other.couriers.find('');
    await other.couriers.find('');
    expect(requests.map(({ url }) => url)).toEqual([
      `${BASE_URL}/couriers`,
      'https://other.example.test/v1/couriers',
    ]);
  });

  test('list → asks each time', async () => {
    const { client, requests } = courierService();
    await client.couriers.find('');
    await client.couriers.list();
    await client.couriers.list();
    expect(requests).toHaveLength(3);
  });

  test('a caller that changes its results → changes nothing for others', async () => {
    const { client } = courierService();
    const [found] = await client.couriers.find('nl-post');
    found?.requiredFields?.pop();
    Object.assign(found ?? {}, { courierName: 'Changed' });
    const [again] = await client.couriers.find('nl-post');
    expect(again).toEqual(COURIERS.find(({ courierCode }) => courierCode === 'nl-post'));
  });
});

test('an error of find → names the line that called it', async () => {
  const { client } = courierService({ status: 404 });
  const callFromHere = () => client.couriers.find('a');
  const stack = expect.stringContaining('callFromHere');
  expect(await catchRejection(callFromHere())).toMatchObject({ name: 'NotFoundError', stack });
});
