import { describe, expect, test } from 'vitest';
import type { Claim } from '../../src/webhooks/index.ts';
import { parseWebhook } from '../../src/webhooks/index.ts';
import { applyClaim, planJobs, type WorkItem } from '../../src/webhooks/work.ts';
import { payload, tracking } from './support.ts';

describe('planJobs', () => {
  test('40,000 messages of one tracker → planned within 1 s of processor time', { timeout: 30_000 }, () => {
    const trackings = Array.from({ length: 40_000 }, (_, index) => tracking('t1', `e${index}`));
    const { messages } = parseWebhook(payload(...trackings));
    const before = process.cpuUsage();
    const { jobs } = planJobs(messages, { onEvent: () => {} });
    const { user, system } = process.cpuUsage(before);
    expect(jobs).toHaveLength(40_000);
    expect((user + system) / 1000).toBeLessThan(1_000);
  });

  test('150,000 events in one message behind another of its tracker → all planned', {
    timeout: 30_000,
  }, () => {
    const events = Array.from({ length: 150_000 }, (_, index) => ({ eventId: `e${index}` }));
    const { messages } = parseWebhook(payload(tracking('t1', 'first'), { ...tracking('t1'), events }));
    expect(planJobs(messages, { onEvent: () => {} }).jobs).toHaveLength(150_001);
  });
});

describe('applyClaim', () => {
  test('an unknown status → an error, and the item stays open', () => {
    const { jobs } = planJobs(parseWebhook(payload(tracking('t1', 'e1'))).messages, { onEvent: () => {} });
    const items: readonly WorkItem[] = jobs.flatMap((job) => job.items);
    // As a store of a program without types would reply.
    const claim = { status: 'aquired' } as unknown as Claim;
    for (const item of items)
      expect(() => applyClaim(item, claim)).toThrow('a status of acquired, busy or done');
    expect(items).toMatchObject([{ state: 'open' }]);
  });
});
