import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { makeHandler, post, SECRET } from './make-handler.ts';
import { payload, tracking } from './support.ts';

const body = payload(tracking('t1', 'e1'));

describe('observers that reject later', () => {
  const rejecting = () => Promise.reject(new Error('no metrics'));

  test('onReport → the answer is the same, and the process lives', async () => {
    expect((await makeHandler({ onReport: rejecting })(post(body))).status).toBe(200);
  });

  test('onRefused, which anyone can make happen → the answer is the same, and the process lives', async () => {
    const request = post(body, { authorization: 'Bearer wrong' });
    expect((await makeHandler({ onRefused: rejecting })(request)).status).toBe(401);
  });
});

describe('no onRefused', () => {
  beforeEach(() => {
    vi.useFakeTimers();
    for (const method of ['warn', 'error'] as const) vi.spyOn(console, method).mockImplementation(() => {});
  });
  afterEach(() => {
    vi.useRealTimers();
    vi.restoreAllMocks();
  });

  test('an inbox that throws → 500, with one line on console.error', async () => {
    const broken = new TypeError('out of order');
    const handler = makeHandler({ inbox: { process: () => Promise.reject(broken) } });
    expect((await handler(post(body))).status).toBe(500);
    expect(console.error).toHaveBeenCalledExactlyOnceWith(
      '[tracking-client] Responded to a webhook with 500: out of order',
      broken,
    );
  });

  test('a body that a middleware has read → 500, with one line that tells so and shows no secret', async () => {
    const request = post(body);
    await request.text();
    expect((await makeHandler()(request)).status).toBe(500);
    const calls = vi.mocked(console.error).mock.calls;
    expect(calls).toMatchObject([[expect.any(String), { name: 'ConfigurationError' }]]);
    expect(JSON.stringify(calls)).not.toContain(SECRET);
  });

  test.each<[string, Request, string]>([
    ['a wrong bearer', post(body, { authorization: 'Bearer wrong' }), 'Expected the webhook secret'],
    ['a body that is no JSON', post('{"a-name'), 'Expected `body` to be JSON, got a string'],
    ['a compressed body', post(body, { 'content-encoding': 'gzip' }), 'Expected an uncompressed body'],
  ])('%s → one line that says what was wrong and nothing of what came', async (_title, request, rule) => {
    await makeHandler()(request);
    const calls = vi.mocked(console.warn).mock.calls;
    expect(calls).toEqual([[expect.stringContaining(`[tracking-client] Refused a webhook: ${rule}`)]]);
    expect(JSON.stringify(calls)).not.toMatch(/a-name|wrong"/);
  });

  test('1,000 refusals in a minute, and one after it → two lines, the second with the number of the others', async () => {
    const handler = makeHandler();
    const refuse = () => handler(post(body, { authorization: 'Bearer wrong' }));
    for (let count = 0; count < 1_000; count += 1) await refuse();
    expect(console.warn).toHaveBeenCalledOnce();
    await vi.advanceTimersByTimeAsync(60_000);
    await refuse();
    expect(console.warn).toHaveBeenCalledTimes(2);
    expect(console.warn).toHaveBeenLastCalledWith(expect.stringContaining('{"refusedSince":999}'));
  });

  test('a refusal after a test has set the clock back → a line all the same', async () => {
    const handler = makeHandler();
    await vi.advanceTimersByTimeAsync(600_000);
    await handler(post('{'));
    vi.useRealTimers();
    vi.useFakeTimers();
    await handler(post('{'));
    expect(console.warn).toHaveBeenCalledTimes(2);
  });

  test("a logger of one's own → gets the lines", async () => {
    const logger = { debug() {}, info() {}, warn: vi.fn(), error: vi.fn() };
    await makeHandler({ logger })(post('{'));
    expect(logger.warn).toHaveBeenCalledOnce();
    expect(console.warn).not.toHaveBeenCalled();
  });
});
