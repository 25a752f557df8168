import type { PollOptions, PollUpdate } from 'tracking-client';
import { describe, expect, test } from 'vitest';
import { advance, contractFake, DAY_MS, NUMBER } from './support/contract-fake.ts';
import { at } from './support/reach.ts';

const MINUTE_MS = 60_000;
const POLL: PollOptions = { initialDelayMs: 0, intervalMs: MINUTE_MS };

describe('a number that never gets results', () => {
  async function neverFound() {
    const service = contractFake();
    const id = await service.createFetched();
    service.fake.play(NUMBER, 'never-found', { speed: Number.POSITIVE_INFINITY });
    return { ...service, id };
  }

  async function archivedWithoutData() {
    const service = contractFake();
    const id = await service.createFetched();
    await service.client.trackers.update(id, { isSubscribed: false });
    return { ...service, id };
  }

  const GIVEN_UP = [
    ['the play "never-found"', neverFound],
    ['archived without data', archivedWithoutData],
  ] as const;

  test.each(GIVEN_UP)('%s → results stay 404 parcel_not_found, isTracked: false', async (_name, reach) => {
    const { call, client, id } = await reach();
    await advance(30 * DAY_MS);
    const { status, body } = await call('GET', `/trackers/${id}/results`);
    expect([status, at(body, 'errors', 0, 'code')]).toEqual([404, 'parcel_not_found']);
    expect(await client.trackers.get(id)).toMatchObject({ isTracked: false });
  });

  test.each(GIVEN_UP)('%s → the number has no results either', async (_name, reach) => {
    const { call } = await reach();
    const { status, body } = await call('GET', `/trackers/search/${NUMBER}/results`);
    const isNone = status === 404 || JSON.stringify(body) === '{"data":{"trackings":[]}}';
    expect(isNone).toBe(true);
  });

  test.each(GIVEN_UP)('%s → poll ends', async (_name, reach) => {
    const { client, id } = await reach();
    const updates: PollUpdate[] = [];
    const read = async () => {
      for await (const update of client.trackers.poll(id, POLL)) updates.push(update);
    };
    const reading = read();
    await advance(5 * MINUTE_MS);
    await reading;
    expect(updates.at(-1)).toMatchObject({ stopped: true, tracking: undefined });
  });
});
