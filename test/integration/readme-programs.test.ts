import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { Hono } from 'hono';
import { createWebhookSender, type WebhookTarget } from 'tracking-client/testing';
import { describe, expect, it, vi } from 'vitest';
import { type Block, readReadme, typeScriptBlocks } from '../readme/support/readme.ts';
import { SECRET, type Stage, setStage } from '../readme/support/stage.ts';

/** Programs that need a service of this machine. */
const RUN_ELSEWHERE = {
  'webhooks 3': 'needs PostgreSQL: readme-services.test.ts',
  'many-processes 1': 'needs Redis: readme-services.test.ts',
};

const AT_ONCE = { speed: Number.POSITIVE_INFINITY };
const DELIVERED = 6; // events of that play

interface Scenario {
  readonly outcome: string;
  /** The keys that the service accepts. Default: any. */
  readonly apiKeys?: readonly string[];
  /** Runs the block, and looks at what came of it. */
  check(stage: Stage, block: Block): Promise<void>;
}

async function urlOf(server: Server | Stage['servers'][number] | undefined): Promise<string> {
  if (server === undefined) throw new Error('Expected a server that was started, got none');
  if (!server.listening) await once(server, 'listening');
  // A server that listens on TCP has an address of this form.
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/webhooks`;
}

/** Sends the webhook of one new event twice. */
async function sendTwice(
  { fake, client }: Stage,
  target: WebhookTarget,
  trackingNumber: string,
): Promise<number[]> {
  await client.trackers.create({ trackingNumber });
  fake.shipment(trackingNumber).addEvent({ statusMilestone: 'in_transit' });
  const sender = createWebhookSender({ target, secret: SECRET, fake, duplicates: 1 });
  expect(await sender.probe()).toBe(true);
  return (await sender.flush()).sent.map(({ status }) => status ?? 0);
}

/** Runs a block in which hours go by. */
async function passTime(stage: Stage, block: Block): Promise<void> {
  vi.useFakeTimers();
  const { length } = stage.fake.requests;
  let isOver = false;
  const run = stage.run(block).finally(() => {
    isOver = true;
  });
  // To load the program takes real time, and nothing may happen meanwhile.
  await vi.waitUntil(() => stage.fake.requests.length > length || isOver, { interval: 1, timeout: 20_000 });
  while (!isOver) await vi.advanceTimersByTimeAsync(5 * 60_000);
  await run;
}

const SCENARIOS: Readonly<Record<string, Scenario>> = {
  'quickstart 1': {
    outcome: 'prints the tracker and its events, oldest first',
    async check(stage, block) {
      stage.fake.play('RR123456785CN', 'delivered', AT_ONCE);
      await stage.run(block);
      expect(stage.output).toHaveLength(1 + DELIVERED);
      expect(stage.output[0]).toBe(`${stage.fake.trackers[0]?.trackerId} delivered`);
      expect(stage.output[1]).toMatch(/ Shipping label created$/);
      expect(stage.output.at(-1)).toMatch(/ Delivered$/);
    },
  },
  'endpoints 1': {
    outcome: 'prints what came with the answer, every tracker, and a raw body',
    async check(stage, block) {
      const { trackerId } = await stage.client.trackers.create({
        trackingNumber: 'LA680658838NL',
        clientTrackerId: 'order-1042',
      });
      await stage.run(block);
      expect(stage.output[0]).toMatch(/^LA680658838NL \S+ 9 1$/);
      expect(stage.output[1]).toBe(`${trackerId} true`);
      expect(stage.output[2]).toContain('couriers');
    },
  },
  'errors 1': {
    outcome: 'prints what its comments say',
    async check(stage, block) {
      await stage.run(block);
      expect(stage.output).toEqual([
        'no results yet, ask again later',
        'no such tracker',
        expect.stringMatching(/^never sent: Expected `trackerId` /),
      ]);
    },
  },
  'limits-and-retries 1': {
    outcome: 'prints the state of one bucket for both clients',
    async check(stage, block) {
      await stage.run(block);
      expect(stage.output[0]).toBe(`0 ${stage.fake.couriers.length}`);
      expect(stage.output[1]).toBe('{ limit: 10, inUse: 1, queued: 0, pausedUntil: null }');
    },
  },
  'polling 1': {
    outcome: 'prints every event once and ends by itself',
    async check(stage, block) {
      stage.fake.play('RR123456785CN', 'delivered');
      await passTime(stage, block);
      expect(stage.output).toHaveLength(DELIVERED + 1);
      expect(stage.output.at(-1)).toBe('delivered and no longer tracked');
      expect(vi.getTimerCount()).toBe(0);
    },
  },
  'polling 2': {
    outcome: 'polls what is still tracked until nothing is',
    async check(stage, block) {
      const trackingNumbers = ['RR123456785CN', 'LA680658838NL', '9400115901047177598206'];
      for (const trackingNumber of trackingNumbers) await stage.client.trackers.create({ trackingNumber });
      stage.fake.shipment('9400115901047177598206').stopTracking();
      for (const number of trackingNumbers.slice(0, 2)) stage.fake.play(number, 'delivered');
      await passTime(stage, block);
      expect(stage.output.filter((line) => line.endsWith(' stopped'))).toHaveLength(2);
      expect(vi.getTimerCount()).toBe(0);
    },
  },
  'bulk-import 1': {
    outcome: 'prints one outcome a row and the summary of its comment',
    async check(stage, block) {
      await stage.run(block);
      expect(stage.output).toEqual([
        `0 created ${stage.fake.trackers[0]?.trackerId}`,
        expect.stringMatching(/^1 invalid Expected `destinationCountryCode` /),
        inspect({ total: 2, created: 1, existing: 0, error: 0, invalid: 1, unknown: 0 }),
      ]);
    },
  },
  'webhooks 1': {
    outcome: 'handles an event once, and ends on SIGTERM',
    async check(stage, block) {
      const before = process.listeners('SIGTERM');
      await stage.run(block);
      const [onTerminate] = process.listeners('SIGTERM').filter((listener) => !before.includes(listener));
      if (onTerminate) process.off('SIGTERM', onTerminate);
      const [server] = stage.servers;
      expect(await sendTwice(stage, await urlOf(server), 'RR123456785CN')).toEqual([200, 200]);
      expect(stage.output).toEqual([expect.stringContaining(' In transit ')]);

      await onTerminate?.('SIGTERM');
      expect(server?.listening).toBe(false);
    },
  },
  'webhooks 2': {
    outcome: 'every framework handles an event, and each event once',
    async check(stage, block) {
      const { app, POST } = await stage.run(block);
      const [express, fastify] = stage.servers;
      if (!(app instanceof Hono)) throw new Error('Expected the block to export a Hono app');
      const hono = (request: Request) => app.fetch(new Request('http://app.test/webhooks', request));
      // The block exports what `createWebhookHandler` gave it; the compiler checks that in another test.
      const targets = [await urlOf(express), await urlOf(fastify), hono, POST as WebhookTarget];
      for (const [index, target] of targets.entries()) {
        expect(await sendTwice(stage, target, `RR12345678${index}CN`)).toEqual([200, 200]);
      }
      expect(stage.output).toHaveLength(targets.length);
    },
  },
  'security-notes 1': {
    outcome: 'takes the key from a file',
    apiKeys: ['key-of-the-file'],
    async check(stage, block) {
      const folder = await mkdtemp(join(tmpdir(), 'readme-'));
      const file = join(folder, 'key');
      await writeFile(file, 'key-of-the-file\n');
      vi.stubEnv('TRACKING_API_KEY_FILE', file);
      vi.stubEnv('TRACKING_API_KEY', 'another-key');
      await stage.run(block).finally(() => rm(folder, { recursive: true }));
      expect(stage.output).toEqual([String(stage.fake.couriers.length)]);
    },
  },
};

describe('a program of the README', () => {
  const { programs } = typeScriptBlocks(readReadme());

  it('all of them → run here, or elsewhere for a reason', () => {
    const run = [...Object.keys(SCENARIOS), ...Object.keys(RUN_ELSEWHERE)];
    const ids = programs.map(({ id }) => id);
    expect(run.sort(), `The blocks of README.md are ${ids.join(', ')}`).toEqual(ids.sort());
  });

  for (const block of programs) {
    const scenario = SCENARIOS[block.id];
    if (scenario === undefined) continue;
    it(`${block.id} → ${scenario.outcome}`, async () => {
      await using stage = await setStage(scenario);
      await scenario.check(stage, block);
    });
  }
});
