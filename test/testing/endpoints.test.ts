import { describe, expect, it } from 'vitest';
import { ENDPOINT_NAMES, type Endpoint, endpoints } from '../../src/endpoints.ts';
import { makeFake, sampleCalls } from './make-fake.ts';

describe.each(ENDPOINT_NAMES)('%s', (name) => {
  const endpoint: Endpoint = endpoints[name];

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
