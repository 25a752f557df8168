import { createFakeTrackingService, createWebhookSender } from 'tracking-client/testing';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { connect, runLine } from './make-terminal.ts';

const NUMBER = 'RR123456785CN';

type Options = NonNullable<Parameters<typeof createFakeTrackingService>[0]>;
/** What the service can respond while there is no news. */
const NO_RESULTS = ['pending', 'parcel_not_found', 'empty'] as const;

/** Connects to a fake with three trackers. */
async function connectWithTrackers(options: Options = {}) {
  const connected = connect(createFakeTrackingService({ resultsDelayMs: 0, limits: false, ...options }));
  const headers = { authorization: 'Bearer any', 'content-type': 'application/json' };
  for (const [index, trackingNumber] of [NUMBER, 'LA680658838NL', 'LP000000001CN'].entries()) {
    const body = JSON.stringify({ trackingNumber, clientTrackerId: `order-${index}` });
    await connected.fetch(`${connected.baseUrl}/trackers`, { method: 'POST', headers, body });
  }
  const [first = '', second = '', third = ''] = connected.trackers.map(({ trackerId }) => trackerId);
  return { fake: connected, ids: [first, second, third] as const };
}

beforeEach(() => {
  vi.useFakeTimers({ now: new Date(2026, 2, 10), toFake: ['Date'] });
});
afterEach(() => {
  vi.useRealTimers();
});

describe('track', () => {
  it('a shipment with events → its milestone, then its events, oldest first, without control characters, exit code 0', async () => {
    connect()
      .shipment(NUMBER)
      .addEvent({ occurrenceDatetime: '2026-03-04T17:12:57+08:00', location: '\u0007Beijing\u001b[2J' })
      .addEvent({ occurrenceDatetime: '2026-03-06', statusMilestone: 'out_for_delivery' })
      .update({ delivery: { estimatedDeliveryDate: '2026-03-09' } });
    const { exitCode, lines } = await runLine(`track ${NUMBER}`);
    expect(exitCode).toBe(0);
    expect(lines()).toEqual([
      `${NUMBER}  Out for delivery`,
      '  expected 9 Mar',
      '  ○  4 Mar 17:12      In transit · Beijing',
      '  ○  6 Mar            Out for delivery',
    ]);
  });

  it('a delivered shipment with an estimate → no estimate', async () => {
    const shipment = connect().shipment(NUMBER).deliver();
    shipment.update({ delivery: { estimatedDeliveryDate: '2026-03-09' } });
    expect((await runLine(`track ${NUMBER}`)).stdout).not.toContain('expected');
  });

  it.each(NO_RESULTS)(
    'a number without results (%s) → how to wait for them, exit code 3',
    async (noResults) => {
      connect(createFakeTrackingService({ noResults }));
      expect(await runLine(`track ${NUMBER}`)).toMatchObject({
        exitCode: 3,
        stdout: '',
        stderr: `No results for ${NUMBER} yet; \`npx --no-install tracking-client watch ${NUMBER}\` waits for them\n`,
      });
    },
  );

  it('flags for couriers, country and post code → sent with the new tracker', async () => {
    const fake = connect();
    fake.shipment(NUMBER).deliver();
    await runLine(`track ${NUMBER} --courier us-post --courier cn-post --destination US --post-code 94901`);
    expect(fake.requests[0]?.body).toEqual({
      trackingNumber: NUMBER,
      courierCode: ['us-post', 'cn-post'],
      destinationCountryCode: 'US',
      destinationPostCode: '94901',
    });
  });
});

describe('show', () => {
  it.each(['number', 'id', 'client-id'])('a tracker by %s → its timeline, exit code 0', async (by) => {
    const { fake, ids } = await connectWithTrackers();
    fake.shipment(NUMBER).addEvent({ occurrenceDatetime: '2026-03-04', status: 'Posted', location: 'Ulm' });
    const name = { id: ids[0], 'client-id': 'order-0' }[by] ?? NUMBER;
    const { exitCode, lines } = await runLine(`show ${name} --by ${by}`);
    expect([exitCode, lines()]).toEqual([0, [`${NUMBER}  On its way`, '  ○  4 Mar            Posted · Ulm']]);
    const [json = ''] = (await runLine(`show ${name} --by ${by} --json`)).lines();
    expect(JSON.parse(json)).toMatchObject({ events: [{ status: 'Posted' }] });
  });

  it('an unknown id → named before the message, exit code 1', async () => {
    connect(createFakeTrackingService());
    const { exitCode, stderr } = await runLine('show nobody --by id');
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/^tracking-client: nobody: the service responded with 404: tracker_not_found: /);
  });

  it.each(NO_RESULTS)(
    'a number without a tracker or without results (%s) → a message, nothing created, exit code 3',
    async (noResults) => {
      const { fake } = await connectWithTrackers({ noResults });
      for (const number of ['LX000000001CN', NUMBER])
        expect(await runLine(`show ${number}`)).toMatchObject({
          exitCode: 3,
          stdout: '',
          stderr: `Found no results for ${number}: either no tracker has this number, or its tracker has no results yet; \`npx --no-install tracking-client list\` shows your trackers\n`,
        });
      expect(fake.trackers).toHaveLength(3);
      expect(fake.requests.slice(3).every(({ method }) => method === 'GET')).toBe(true);
    },
  );

  it.each(NO_RESULTS)('an id without results (%s) → a message, exit code 3', async (noResults) => {
    const { ids } = await connectWithTrackers({ noResults });
    expect(await runLine(`show ${ids[0]} --by id`)).toMatchObject({
      exitCode: 3,
      stdout: '',
      stderr: `The tracker ${ids[0]} has no results yet; \`npx --no-install tracking-client list\` shows your trackers\n`,
    });
  });

  it('a 404 without a code of the service → the base URL is doubted, exit code 1', async () => {
    const { fake } = await connectWithTrackers();
    fake.fail('trackers.resultsByTrackingNumber', { kind: 'html', status: 404 });
    const { exitCode, stderr } = await runLine(`show ${NUMBER}`);
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining(`check the base URL ${fake.baseUrl}`)]);
  });
});

describe('list', () => {
  it('three trackers → newest first, with number, state, date and ids, also as JSON, exit code 0', async () => {
    const { fake, ids } = await connectWithTrackers();
    fake.shipment('LA680658838NL').stopTracking();
    const { exitCode, lines } = await runLine('list');
    expect(exitCode).toBe(0);
    expect(lines()).toEqual([
      expect.stringMatching(/^Number +State +Created +Id +Client id$/),
      expect.stringMatching(new RegExp(`^LP000000001CN +tracked +\\d+ \\w+ +${ids[2]} +order-2$`)),
      expect.stringMatching(/^LA680658838NL +stopped /),
      expect.stringMatching(/^RR123456785CN +tracked /),
    ]);
    const json = (await runLine('list --json')).lines().map((line) => JSON.parse(line).trackerId);
    expect(json).toEqual(ids.toReversed());
    const tracked = (await runLine('list --tracked')).lines();
    expect(tracked).toEqual([expect.anything(), expect.stringMatching(/^LP/), expect.stringMatching(/^RR/)]);
  });

  it('trackers without client ids → no column for client ids, and lines of at most 80 characters', async () => {
    connect();
    await runLine('track 9400115901047177598206');
    const { lines } = await runLine('list');
    expect(lines()[0]).toMatch(/Id$/);
    expect(Math.max(...lines().map((line) => line.length))).toBeLessThanOrEqual(80);
  });

  it.each([
    [2, 'These are the newest 2 trackers; a higher --limit shows more\n'],
    [3, ''],
  ])('three trackers and --limit %i → that number of lines, and %j on stderr', async (limit, stderr) => {
    await connectWithTrackers();
    const { lines, ...output } = await runLine(`list --limit ${limit}`);
    expect(lines()).toHaveLength(limit + 1);
    expect(output.stderr).toBe(stderr);
  });

  it('no trackers, or --tracked and none is tracked any more → a message on stderr, exit code 0', async () => {
    const { fake } = await connectWithTrackers();
    for (const { trackerId } of fake.trackers) fake.shipment({ trackerId }).stopTracking();
    const noneTracked =
      'No shipment of this account is being tracked; `npx --no-install tracking-client list` shows all trackers\n';
    expect(await runLine('list --tracked')).toMatchObject({ exitCode: 0, stdout: '', stderr: noneTracked });
    fake.reset();
    const noTrackers =
      'This account has no trackers; `npx --no-install tracking-client track NUMBER` creates one\n';
    expect(await runLine('list')).toMatchObject({ exitCode: 0, stdout: '', stderr: noTrackers });
  });
});

describe('stop', () => {
  it.each(['id', 'client-id', 'number'])('by %s → no longer tracked, exit code 0', async (by) => {
    const { fake, ids } = await connectWithTrackers();
    fake.shipment(NUMBER).addEvent({});
    const name = { id: ids[0], 'client-id': 'order-0' }[by] ?? NUMBER;
    const { exitCode, stdout } = await runLine(`stop ${name} --by ${by}`);
    expect([exitCode, stdout]).toEqual([0, `${NUMBER}  no longer tracked  ${ids[0]}\n`]);
    expect(fake.trackers.map(({ isTracked }) => isTracked)).toEqual([false, true, true]);
  });

  it('a number of two trackers, and a number without results → no tracker is stopped, exit code 1', async () => {
    const { fake, ids } = await connectWithTrackers();
    await runLine(`track ${NUMBER} --destination US`);
    for (const { trackerId } of fake.trackers.slice(2)) fake.shipment({ trackerId }).addEvent({});
    fake.shipment({ trackerId: ids[0] }).addEvent({});
    const { exitCode, stderr } = await runLine(`stop ${NUMBER} LX000000001CN --by number`);
    expect(exitCode).toBe(1);
    expect(stderr.split('\n')).toEqual([
      `${NUMBER}  2 trackers have this number; pass one of these ids with --by id: ${ids[0]}, ${fake.trackers.at(-1)?.trackerId}`,
      'LX000000001CN  no tracker with results has this number; if yours has no results yet, look up its id with `npx --no-install tracking-client list`, and pass the id with --by id',
      '',
    ]);
    expect(fake.trackers.every(({ isTracked }) => isTracked)).toBe(true);
  });

  it('a number without results → its tracker is stopped', async () => {
    const { fake, ids } = await connectWithTrackers();
    const { exitCode, stdout } = await runLine(`stop ${NUMBER} --by number`);
    expect([exitCode, stdout]).toEqual([0, `${NUMBER}  no longer tracked  ${ids[0]}\n`]);
    expect(fake.trackers[0]?.isTracked).toBe(false);
  });

  it.each(NO_RESULTS)('a number without a tracker (%s) → a message, exit code 3', async (noResults) => {
    await connectWithTrackers({ noResults });
    const { exitCode, stdout, stderr } = await runLine('stop LX000000001CN --by number');
    expect([exitCode, stdout]).toEqual([3, '']);
    expect(stderr).toMatch(
      /^LX000000001CN {2}no tracker with results has this number; if yours .* --by id\n$/,
    );
  });

  it.each([
    ['LX000000001CN', NUMBER],
    [NUMBER, 'LX000000001CN'],
  ])(
    '%s and %s, one of them without a tracker → the other is stopped, exit code 3',
    async (first, second) => {
      const { fake } = await connectWithTrackers();
      expect((await runLine(`stop ${first} ${second} --by number`)).exitCode).toBe(3);
      expect(fake.trackers[0]?.isTracked).toBe(false);
    },
  );

  it('a number whose results name one tracker twice → this tracker is stopped', async () => {
    const { fake, ids } = await connectWithTrackers();
    fake.shipment(NUMBER).addEvent({});
    vi.stubGlobal('fetch', async (...args: Parameters<typeof fake.fetch>) => {
      const response = await fake.fetch(...args);
      const body = await response.json();
      const { trackings } = body.data;
      return Response.json({ data: trackings ? { trackings: [...trackings, ...trackings] } : body.data });
    });
    const { exitCode, stdout } = await runLine(`stop ${NUMBER} --by number`);
    expect([exitCode, stdout]).toEqual([0, `${NUMBER}  no longer tracked  ${ids[0]}\n`]);
  });

  it('an unknown id among known ids → one error line, also as JSON; the known trackers are stopped, exit code 1', async () => {
    const { fake, ids } = await connectWithTrackers();
    const { exitCode, stderr } = await runLine(`stop gone ${ids[1]}`);
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/^gone {2}the service responded with 404: tracker_not_found: .*\n$/);
    expect(fake.trackers.map(({ isTracked }) => isTracked)).toEqual([true, false, true]);
    const json = (await runLine(`stop gone ${ids[0]} --json`)).lines().map((line) => JSON.parse(line));
    expect(json).toMatchObject([
      { name: 'gone', error: expect.stringContaining('tracker_not_found') },
      { trackerId: ids[0], isTracked: false },
    ]);
  });

  it('a wrong key → one error for all trackers, exit code 1', async () => {
    const { fake, ids } = await connectWithTrackers();
    fake.fail('trackers.update', { status: 401, code: 'auth_invalid_api_key', times: 2 });
    const { exitCode, stderr } = await runLine(`stop ${ids.join(' ')}`);
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/^tracking-client: .*auth_invalid_api_key.*\n$/);
    expect(fake.trackers.every(({ isTracked }) => isTracked)).toBe(true);
  });
});

describe('resend', () => {
  it('a tracker with events → the number of events that are sent again, exit code 0', async () => {
    const { fake, ids } = await connectWithTrackers();
    fake.shipment(NUMBER).addEvent({}).deliver();
    await createWebhookSender({ target: () => new Response(), fake }).flush();
    const { exitCode, stdout } = await runLine(`resend ${ids[0]}`);
    expect([exitCode, stdout]).toEqual([0, `${ids[0]}  2 events will be sent again\n`]);
    expect(fake.webhooks.pending.filter(({ isReplay }) => isReplay)).not.toEqual([]);
    const { stdout: json } = await runLine(`resend ${NUMBER} --by number --json`);
    expect(JSON.parse(json)).toEqual({ id: ids[0], totalResent: expect.any(Number) });
  });

  it.each(['resend', 'history'])(
    '%s, a number without a tracker → a message, exit code 3',
    async (command) => {
      await connectWithTrackers();
      const { exitCode, stdout, stderr } = await runLine(`${command} LX000000001CN --by number`);
      expect([exitCode, stdout]).toEqual([3, '']);
      expect(stderr).toContain('no tracker with results has this number');
    },
  );
});

describe('history', () => {
  /** A tracker whose first webhook got a 503 with a page, and whose second one got a 200. */
  async function connectWithPushes() {
    const connected = await connectWithTrackers();
    const { fake } = connected;
    const responses = [
      new Response('\nout of order\nask later', { status: 503 }),
      new Response('ok\u001b[2J'),
    ];
    const sender = createWebhookSender({ target: () => responses.shift() ?? new Response(), fake });
    fake.shipment(NUMBER).addEvent({});
    await sender.flush();
    vi.setSystemTime(new Date(2026, 2, 11));
    await sender.flush();
    fake.shipment(NUMBER).deliver();
    await sender.flush();
    return connected;
  }

  it('pushes with 503 and 200 → newest first, with time, status and first line; failed ones are marked', async () => {
    const { ids } = await connectWithPushes();
    const { exitCode, lines } = await runLine(`history ${ids[0]}`);
    expect(exitCode).toBe(0);
    expect(lines().at(-1)).toMatch(/^✗ 10 Mar \d\d:\d\d UTC {2}failed: 503 out of order$/);
    expect(lines().at(-2)).toMatch(/^✓ 1[01] Mar \d\d:\d\d UTC {2}200 ok$/);
  });

  it('--json, with a tracking number → each push as it came', async () => {
    await connectWithPushes();
    const { lines } = await runLine(`history ${NUMBER} --by number --json`);
    expect(
      lines()
        .map((line) => JSON.parse(line))
        .at(-1),
    ).toMatchObject({
      status: 'failed',
      responseStatusCode: '503',
      requestBody: expect.anything(),
    });
  });

  it('no webhooks yet → a message on stderr, exit code 3', async () => {
    const { ids } = await connectWithTrackers();
    expect(await runLine(`history ${ids[1]}`)).toMatchObject({
      exitCode: 3,
      stdout: '',
      stderr: `The service has sent no webhooks for ${ids[1]} yet\n`,
    });
  });
});

describe('a tracking number where an id is expected', () => {
  it.each(['stop', 'resend', 'history', 'show --by id'])(
    '%s → the message suggests --by number',
    async (line) => {
      connect();
      const { exitCode, stderr } = await runLine(`${line} ${NUMBER}`);
      expect([exitCode, stderr]).toEqual([
        1,
        expect.stringMatching(/tracker_not_found: .*; if this is a tracking number, add --by number\n$/),
      ]);
    },
  );

  it('an unknown client id → no such advice', async () => {
    connect();
    const { stderr } = await runLine('stop --by client-id order-1');
    expect(stderr).not.toContain('--by number');
  });
});

describe('couriers', () => {
  it.each(['POSTE', 'fr-', 'fr'])(
    '%s → couriers that have this text in code, name or country',
    async (text) => {
      connect();
      const { exitCode, lines } = await runLine(`couriers ${text}`);
      expect(exitCode).toBe(0);
      expect(lines()).toEqual([
        expect.stringMatching(/^Code +Name +Country +Required fields$/),
        expect.stringMatching(/^fr-post +La Poste/),
      ]);
    },
  );

  it('a text without its accent → the best fit first, and deprecated couriers, too', async () => {
    const { couriers } = connect(createFakeTrackingService({ limits: false }));
    couriers.splice(0, couriers.length);
    couriers.push({ courierCode: 'a-ostra', courierName: 'Kurir', isDeprecated: true });
    couriers.push({ courierCode: 'b', courierName: 'Östra' });
    const lines = (await runLine('couriers ostra --json')).lines();
    expect(lines.map((line) => JSON.parse(line).courierCode)).toEqual(['b', 'a-ostra']);
  });

  it('no text → all couriers with their required fields, also as JSON', async () => {
    connect(createFakeTrackingService({ limits: false }));
    const { stdout } = await runLine('couriers');
    expect(stdout).toMatch(/\nnl-post +PostNL +NL +destinationPostCode, destinationCountryCode\n/);
    const json = (await runLine('couriers --json')).lines().map((line) => JSON.parse(line).courierCode);
    expect(json).toContain('us-post');
  });

  it('a text that no courier has → a message on stderr, exit code 3', async () => {
    connect();
    expect(await runLine('couriers nobody')).toMatchObject({
      exitCode: 3,
      stdout: '',
      stderr:
        'No courier was found with "nobody" in its code, name or country; `npx --no-install tracking-client couriers` lists all\n',
    });
  });
});
