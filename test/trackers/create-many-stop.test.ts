import { expect, test } from 'vitest';
import { bulkService, collect, created, gate, inputsOf, refused, settled } from './bulk-service.ts';

test('two requests under way are refused for different reasons → the rest come out with the first one', async () => {
  const first = gate();
  const second = gate();
  const { client, sent } = bulkService(async (inputs, request) => {
    if (request > 2) return created(inputs);
    await (request === 1 ? first : second).opened;
    return refused(403, request === 1 ? 'bulk_create_limit_exceeded' : 'quota_limit_reached');
  });
  const options = { chunkSize: 1, concurrency: 2 };
  const collecting = collect(client.trackers.createMany(inputsOf(4), options));
  await settled();
  second.open();
  await settled();
  first.open();
  const { outcomes } = await collecting;
  expect(sent).toHaveLength(2);
  expect(outcomes.map(({ errors }) => errors?.[0]?.code)).toEqual([
    'bulk_create_limit_exceeded',
    'quota_limit_reached',
    'quota_limit_reached',
    'quota_limit_reached',
  ]);
});

test('an input whose getter throws → invalid, and the others go on', async () => {
  const { client, sent } = bulkService();
  const [first, second] = inputsOf(2);
  const lazy = {
    get trackingNumber(): string {
      throw new Error('connection closed');
    },
  };
  const inputs = [first, lazy, second].filter((input) => input !== undefined);
  const { outcomes, error } = await collect(client.trackers.createMany(inputs));
  expect(error).toBeUndefined();
  expect(outcomes.map(({ status }) => status)).toEqual(['created', 'invalid', 'created']);
  expect(sent).toHaveLength(1);
});
