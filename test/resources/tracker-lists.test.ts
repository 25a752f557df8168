import { describe, expect, test } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import { TRACKER } from '../contract/support/samples.ts';
import { catchRejection, makeClient, type SeenRequest } from '../support/make-client.ts';

const page = (...ids: string[]) => ({
  data: { trackers: ids.map((trackerId) => ({ ...TRACKER, trackerId })) },
});
const makePage = (count: number) => page(...Array.from({ length: count }, (_, index) => `id-${index}`));
const readQuery = (request: SeenRequest | undefined) =>
  Object.fromEntries(new URL(request?.url ?? '').searchParams);

describe('list', () => {
  test('no arguments → page 1 of 100, in the order of the service', async () => {
    const { client, requests } = makeClient({ body: page('a') });
    expect(await client.trackers.list()).toMatchObject({ page: 1, limit: 100, hasMore: false });
    expect(readQuery(requests[0])).toEqual({ page: '1', limit: '100' });
  });

  test('page, limit and sort → sent', async () => {
    const { client, requests } = makeClient({ body: page() });
    await client.trackers.list({ page: 3, limit: 7, sort: -1 });
    expect(readQuery(requests[0])).toEqual({ page: '3', limit: '7', sort: '-1' });
  });

  test.each([
    [150, 500, false],
    [500, 500, true],
    [100, 500, true],
    [99, 100, false],
    [100, 100, true],
  ])('%d trackers for a limit of %d → hasMore %s', async (count, limit, hasMore) => {
    const { client } = makeClient({ body: makePage(count) });
    expect(await client.trackers.list({ limit })).toMatchObject({ limit, hasMore });
  });
});

describe('listAll', () => {
  const collect = async (trackers: AsyncIterable<{ trackerId: string }>) => {
    const ids: string[] = [];
    for await (const tracker of trackers) ids.push(tracker.trackerId);
    return ids;
  };

  test('no arguments → the largest pages, oldest first', async () => {
    const { client, requests } = makeClient({ body: page() });
    expect(await collect(client.trackers.listAll())).toEqual([]);
    expect(requests.map(readQuery)).toEqual([{ page: '1', limit: '500', sort: '1' }]);
  });

  test('a list that is never iterated → nothing is sent', async () => {
    const { client, requests } = makeClient({ body: page() });
    client.trackers.listAll();
    await Promise.resolve();
    expect(requests).toHaveLength(0);
  });

  test('break → no further page is requested', async () => {
    const { client, requests } = makeClient({ body: page('a', 'b') });
    for await (const tracker of client.trackers.listAll({ limit: 2 })) if (tracker.trackerId === 'b') break;
    expect(requests).toHaveLength(1);
  });

  test('a page that fails → the trackers of earlier pages, then the error', async () => {
    const { client } = makeClient([{ body: page('a', 'b') }, { status: 404 }]);
    const seen: string[] = [];
    const walk = async () => {
      for await (const tracker of client.trackers.listAll({ limit: 2 })) seen.push(tracker.trackerId);
    };
    expect(await catchRejection(walk())).toMatchObject({ name: 'NotFoundError' });
    expect(seen).toEqual(['a', 'b']);
  });

  test('options of the call → used for every page', async () => {
    const { client, requests } = makeClient([{ body: page('a') }, { body: page() }]);
    await collect(client.trackers.listAll({ limit: 1, sort: -1 }, { headers: { 'x-a': 'b' } }));
    expect(requests.map(({ headers }) => headers.get('x-a'))).toEqual(['b', 'b']);
    expect(readQuery(requests[1])).toEqual({ page: '2', limit: '1', sort: '-1' });
  });

  const withNumbers = (...numbers: string[]) => ({
    data: { trackers: numbers.map((trackingNumber) => ({ trackingNumber })) },
  });
  const changing = [true, false].map((isTracked) => ({ data: { trackers: [{ ...TRACKER, isTracked }] } }));

  test.each<[what: string, pages: object[], trackers: number, requests: number]>([
    ['pages until one is empty', [page('a', 'b'), page('c', 'd'), page('e'), page()], 5, 4],
    ['a service that ignores `page`', [makePage(120)], 120, 2],
    ['such a service, and trackers without an id', [withNumbers('LA680658838NL', 'LA680658839NL')], 2, 2],
    ['such a service, and a tracker that changes meanwhile', changing, 1, 2],
    [
      'pages of other trackers without an id',
      [withNumbers('LA680658838NL'), withNumbers('LA680658839NL'), withNumbers()],
      2,
      3,
    ],
  ])('%s → every tracker once, then the end', async (_, pages, trackers, count) => {
    const { client, requests } = makeClient(pages.map((body) => ({ body })));
    expect(await collect(client.trackers.listAll())).toHaveLength(trackers);
    expect(requests.map((request) => readQuery(request)['page'])).toEqual(
      Array.from({ length: count }, (_page, index) => `${index + 1}`),
    );
  });

  test('a page that repeats trackers of the previous page, because some were deleted → the next page is requested', async () => {
    const { client } = makeClient([
      { body: page('a', 'b') },
      { body: page('b', 'c') },
      { body: page('d') },
      { body: page() },
    ]);
    expect(await collect(client.trackers.listAll({ limit: 2 }))).toEqual(['a', 'b', 'b', 'c', 'd']);
  });
});

test.each(['signal', 'timeoutMs', 'totalTimeoutMs', 'retry', 'headers', 'priority'])(
  'the option `%s` left in the query → ConfigurationError that says where it belongs, nothing is sent',
  async (name) => {
    const { client, requests } = makeClient({ body: page('a') });
    const query: object = { limit: 5, [name]: null };
    const errors = [
      await catchRejection(client.trackers.list(query)),
      await catchRejection(client.trackers.listAll(query).next()),
    ];
    const rule = `\`${name}\` is an option of the call and not of the query; pass it as the second argument, as in`;
    expect(errors).toMatchObject([
      { name: 'ConfigurationError', option: name, message: `${rule} \`list(query, { ${name} })\`` },
      { name: 'ConfigurationError', option: name, message: `${rule} \`listAll(query, { ${name} })\`` },
    ]);
    expect(requests).toHaveLength(0);
  },
);

test('every option of a call in the query, but undefined → ignored', async () => {
  const { client, requests } = makeClient({ body: page() });
  const options = { signal: undefined, timeoutMs: undefined, totalTimeoutMs: undefined };
  const query: object = { limit: 5, ...options, retry: undefined, headers: undefined, priority: undefined };
  await client.trackers.list(query);
  await client.trackers.listAll(query).next();
  expect(requests.map((request) => readQuery(request)['limit'])).toEqual(['5', '5']);
});

test('options as the second argument → used: an abort ends list and listAll', async () => {
  const { client, requests } = makeClient({ body: page('a') });
  const options = { signal: AbortSignal.abort('enough') };
  expect(await catchRejection(client.trackers.list({}, options))).toBe('enough');
  expect(await catchRejection(client.trackers.listAll({}, options).next())).toBe('enough');
  expect(requests).toHaveLength(0);
});

test.each([null, undefined])('%s as page, limit or sort → the default', async (none) => {
  const { client, requests } = makeClient({ body: page() });
  await client.trackers.list({ page: none, limit: none, sort: none });
  await client.trackers.listAll({ limit: none, sort: none }).next();
  expect(requests.map(readQuery)).toEqual([
    { page: '1', limit: '100' },
    { page: '1', limit: '500', sort: '1' },
  ]);
});

test('listAll with null → ConfigurationError, like list with null', async () => {
  const { client, requests } = makeClient({ body: page('a') });
  // @ts-expect-error: a program without types gives anything.
  expect(await catchRejection(client.trackers.listAll(null).next())).toBeInstanceOf(ConfigurationError);
  expect(requests).toHaveLength(0);
});
