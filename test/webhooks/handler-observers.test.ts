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
    vi.spyOn(console, 'error').mockImplementation(() => {});
  });
  afterEach(() => {
    vi.restoreAllMocks();
  });

  test('an inbox that throws → 500, with one line on console.error', async () => {
    const broken = new TypeError('out of order');
    const handler = makeHandler({ inbox: { process: () => Promise.reject(broken) } });
    expect((await handler(post(body))).status).toBe(500);
    expect(console.error).toHaveBeenCalledExactlyOnceWith('tracking-client: webhook answered with 500', {
      error: broken,
    });
  });

  test('a body that a middleware has read → 500, with one line that tells so and shows no secret', async () => {
    const request = post(body);
    await request.text();
    expect((await makeHandler()(request)).status).toBe(500);
    const calls = vi.mocked(console.error).mock.calls;
    expect(calls).toMatchObject([[expect.any(String), { error: { name: 'ConfigurationError' } }]]);
    expect(JSON.stringify(calls)).not.toContain(SECRET);
  });

  test.each<[string, Request]>([
    ['a wrong bearer', post(body, { authorization: 'Bearer wrong' })],
    ['a body that is no JSON', post('{')],
    ['a compressed body', post(body, { 'content-encoding': 'gzip' })],
  ])('%s, which anyone can send → no line, or anyone could fill the log', async (_title, request) => {
    await makeHandler()(request);
    expect(console.error).not.toHaveBeenCalled();
  });
});
