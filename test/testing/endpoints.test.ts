import { describe, expect, it } from 'vitest';
import { ENDPOINT_NAMES, type Endpoint, endpoints } from '../../src/endpoints.ts';
import { makeFake, NUMBER, sampleCalls } from './make-fake.ts';

describe.each(ENDPOINT_NAMES)('%s', (name) => {
  const endpoint: Endpoint = endpoints[name];

  it('a valid request → a success that the schema of the table accepts, recorded under its own name', async () => {
    const { fake, call, createId } = makeFake({ plans: { perCall: true } });
    const id = await createId();
    fake.play(NUMBER, 'delivered', { speed: Number.POSITIVE_INFINITY });
    const [push = expect.fail('nothing queued')] = fake.webhooks.take();
    fake.webhooks.record(push, { status: 200, succeeded: true });
    const response = await call(...sampleCalls[name](id));
    expect(response.status).toBeLessThan(300);
    const unwrapped = endpoint.response.unwrap(response.body);
    const payload = 'payload' in unwrapped ? unwrapped.payload : expect.fail(unwrapped.mismatch);
    expect(endpoint.response.schema.safeParse(payload)).toMatchObject({ success: true });
    expect(fake.requests.at(-1)?.endpoint).toBe(name);
  });

  it('more requests in a second than the table allows → 429, and 200 in the next second', async () => {
    const { call, createId, advance } = makeFake({ plans: { perCall: true }, limits: {} });
    const sample = sampleCalls[name](await createId());
    advance(1000);
    const statuses: number[] = [];
    for (let sent = 0; sent <= endpoint.limitPerSecond; sent += 1)
      statuses.push((await call(...sample)).status);
    advance(1000);
    expect(statuses.indexOf(429)).toBe(endpoint.limitPerSecond);
    expect((await call(...sample)).status).not.toBe(429);
  });
});
