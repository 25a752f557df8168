import { describe, expect, it } from 'vitest';
import { ENDPOINT_NAMES, type Endpoint, endpoints } from '../../src/endpoints.ts';
import { makeFake, NUMBER, sampleCalls } from './make-fake.ts';

describe.each(ENDPOINT_NAMES)('%s', (name) => {
  const endpoint: Endpoint = endpoints[name];

  async function answerOf() {
    const { fake, call, createId } = makeFake({ plans: { perCall: true } });
    const id = await createId();
    fake.play(NUMBER, 'delivered', { speed: Number.POSITIVE_INFINITY });
    fake.webhooks.record(fake.webhooks.take()[0] ?? expect.fail('nothing queued'), {
      status: 200,
      succeeded: true,
    });
    const response = await call(...sampleCalls[name](id));
    return { response, recorded: fake.requests.at(-1) };
  }

  it('a valid request → a success that the response schema of the table accepts', async () => {
    const { response } = await answerOf();
    expect(response.status).toBeLessThan(300);
    const unwrapped = endpoint.response.unwrap(response.body);
    const payload = 'payload' in unwrapped ? unwrapped.payload : expect.fail(unwrapped.mismatch);
    expect(endpoint.response.schema.safeParse(payload)).toMatchObject({ success: true });
  });

  it('a valid request → recorded under its own name', async () => {
    const { recorded } = await answerOf();
    expect(recorded?.endpoint).toBe(name);
  });

  it('no key → 400 auth_missing_header', async () => {
    const { fake } = makeFake({ plans: { perCall: true } });
    const [method, path] = sampleCalls[name]('some-id');
    const response = await fake.fetch(fake.baseUrl + path, { method });
    expect(response.status).toBe(400);
    expect(await response.text()).toContain('auth_missing_header');
  });

  it('more requests in a second than the table allows → 429, and 200 in the next second', async () => {
    const { call, createId, advance } = makeFake({ plans: { perCall: true }, limits: {} });
    const sample = sampleCalls[name](await createId());
    advance(1000);
    const statuses: number[] = [];
    for (let sent = 0; sent <= endpoint.limitPerSecond; sent += 1)
      statuses.push((await call(...sample)).status);
    advance(1000);
    const later = (await call(...sample)).status;
    expect(statuses.indexOf(429)).toBe(endpoint.limitPerSecond);
    expect(later).not.toBe(429);
  });
});
