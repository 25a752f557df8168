import { request } from 'node:http';
import { TrackingClient } from 'tracking-client';
import {
  buildEvent,
  buildWebhookMessage,
  createFakeTrackingService,
  createWebhookSender,
} from 'tracking-client/testing';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { run } from '../../src/cli/program.ts';
import { makeTerminal, runLine, webhookUrlIn } from './make-terminal.ts';

const NUMBER = 'RR123456785CN';

describe('listen', () => {
  const started: { recorded: ReturnType<typeof makeTerminal>; exitCode: Promise<number> }[] = [];
  afterEach(async () => {
    for (const { recorded, exitCode } of started.splice(0)) {
      recorded.interrupt();
      await exitCode;
    }
  });

  async function start(...flags: string[]) {
    const recorded = makeTerminal();
    const { terminal, output } = recorded;
    const exitCode = run(['listen', '--port', '0', ...flags], terminal);
    started.push({ recorded, exitCode });
    const url = await webhookUrlIn(output);
    const fake = createFakeTrackingService();
    const client = new TrackingClient({ baseUrl: fake.baseUrl, apiKey: fake.apiKey, fetch: fake.fetch });
    await client.trackers.create({ trackingNumber: NUMBER });
    fake.shipment(NUMBER).addEvent({ status: 'Posted', location: 'Ulm' });
    return { fake, url, exitCode, ...recorded };
  }

  it('an event that is delivered three times → printed once', async () => {
    const { fake, url, lines, output } = await start('--secret', 'hush');
    const sender = createWebhookSender({ target: url, fake, secret: 'hush', duplicates: 2 });
    expect(await sender.flush()).toMatchObject({ accepted: 1, sent: [{}, {}, {}] });
    expect(lines().slice(2)).toEqual([
      expect.stringMatching(/^\d\d:\d\d:\d\d RR123456785CN On its way: Posted · Ulm$/),
      expect.stringMatching(/ duplicate: its events are printed above$/),
      expect.stringMatching(/ duplicate: its events are printed above$/),
    ]);
    expect(output.stdout + output.stderr).not.toContain('hush');
  });

  it('a wrong secret → refused with a line that gives the reason and shows neither secret', async () => {
    const { fake, url, output } = await start('--secret', 'hush');
    expect((await createWebhookSender({ target: url, fake, secret: 'wrong-one' }).flush()).accepted).toBe(0);
    expect(output.stderr).toMatch(/^Refused a webhook: .*\n$/);
    expect(output.stdout + output.stderr).not.toMatch(/hush|wrong-one/);
  });

  it('no secret → accepted, with a warning', async () => {
    const { fake, url, output } = await start();
    expect((await createWebhookSender({ target: url, fake }).flush()).accepted).toBe(1);
    expect(output.stderr).toMatch(/^No secret is set, so webhooks from anyone are accepted/);
  });

  it('--json → the URL, then one event per line', async () => {
    const { fake, url, lines } = await start('--secret', 'hush', '--json');
    fake.shipment(NUMBER).proveDelivery();
    await createWebhookSender({ target: url, fake, secret: 'hush' }).flush();
    expect(lines().map((line) => JSON.parse(line))).toMatchObject([
      { listening: url },
      { trackingNumber: NUMBER, topic: 'tracking/events', event: { status: 'Posted' } },
      { trackingNumber: NUMBER, topic: 'tracking/pod', data: { status: 'found' } },
    ]);
  });

  it('Ctrl-C → stops listening, exit code 0', async () => {
    const { url, exitCode, interrupt } = await start();
    interrupt();
    expect(await exitCode).toBe(0);
    await expect(fetch(url, { method: 'HEAD' })).rejects.toThrow('fetch failed');
  });

  /** Begins a webhook; the body ends when the test ends it. */
  async function begin(url: string) {
    const webhook = request(url, { method: 'POST', headers: { 'content-type': 'application/json' } });
    const status = new Promise<number | undefined>((resolve, reject) => {
      webhook.on('response', (response) => resolve(response.resume().statusCode)).on('error', reject);
    });
    status.catch(() => {});
    webhook.write('{"trackings":[');
    // A later request is answered, so the webhook has arrived, too.
    await fetch(url, { method: 'HEAD' });
    return { webhook, status };
  }

  it('Ctrl-C while a webhook arrives → the webhook is printed and gets its response', async () => {
    const { url, exitCode, interrupt, lines } = await start();
    const { webhook, status } = await begin(url);
    interrupt();
    webhook.end(`${JSON.stringify(buildWebhookMessage({ events: [buildEvent({ status: 'Posted' })] }))}]}`);
    expect([await status, await exitCode]).toEqual([200, 0]);
    expect(lines().at(-1)).toContain(' Posted');
  });

  it('Ctrl-C and a webhook that never ends → its connection is closed after two seconds, exit code 0', async () => {
    const { url, exitCode, interrupt } = await start();
    const { status } = await begin(url);
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    interrupt();
    await vi.advanceTimersByTimeAsync(2000);
    expect(await exitCode).toBe(0);
    await expect(status).rejects.toThrow('socket hang up');
  });

  it('a port in use → one sentence, exit code 1', async () => {
    const { url } = await start();
    const { port } = new URL(url);
    expect(await runLine(`listen --port ${port}`)).toMatchObject({
      exitCode: 1,
      stdout: '',
      stderr: `tracking-client: Could not listen on port ${port} of 127.0.0.1: address already in use (EADDRINUSE); choose another --port or --host\n`,
    });
  });
});
