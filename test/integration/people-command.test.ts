import { createFakeTrackingService, createWebhookSender } from 'tracking-client/testing';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { type BundledCommand, bundleCommand, printed } from './command.ts';

const NUMBER = 'RR123456785CN';

describe('tracking-client', () => {
  let cli: BundledCommand;
  beforeAll(async () => {
    cli = await bundleCommand();
  });
  afterAll(() => cli[Symbol.asyncDispose]());

  it('fake, then watch until the end → the whole journey, exit code 0', async () => {
    const fake = cli.start(['fake', '--port', '0', '--speed', '400000']);
    const [, baseUrl = ''] = await printed(fake, /export TRACKING_BASE_URL=(\S+)/);
    const environment = { TRACKING_BASE_URL: baseUrl, TRACKING_API_KEY: 'any' };
    const watch = cli.start(['watch', NUMBER, '--interval', '1s'], environment);
    expect(await watch.exitCode).toBe(0);
    expect(watch.output.stderr).toBe('');
    expect(watch.output.stdout).not.toContain('\u001b');
    const lines = watch.output.stdout.trimEnd().split('\n');
    expect(lines.filter((line) => / [○●] /.test(line))).toHaveLength(6);
    expect(lines.at(-1)).toBe(`${NUMBER}  delivered, and no longer tracked`);
    const track = cli.start(['track', NUMBER], environment);
    expect(await track.exitCode).toBe(0);
    expect(track.output.stdout).toMatch(/^RR123456785CN {2}delivered\n( {2}[○●] .*\n){6}$/);
  });

  it('listen and SIGTERM → the event is printed, exit code 0', async () => {
    const service = createFakeTrackingService({ resultsDelayMs: 0 });
    const listen = cli.start(['listen', '--port', '0'], {
      TRACKING_WEBHOOK_SECRET: 'hush',
    });
    const [target] = await printed(listen, /http:\S+/);
    await service.fetch(`${service.baseUrl}/trackers`, {
      method: 'POST',
      headers: { authorization: 'Bearer any', 'content-type': 'application/json' },
      body: JSON.stringify({ trackingNumber: NUMBER }),
    });
    service.shipment(NUMBER).deliver();
    expect((await createWebhookSender({ target, fake: service, secret: 'hush' }).flush()).accepted).toBe(1);
    await printed(listen, /RR123456785CN delivered Delivered\n/);
    listen.child.kill('SIGTERM');
    expect(await listen.exitCode).toBe(0);
    expect(listen.output.stderr).toBe('');
  });

  it('watch and SIGINT → exit code 130, at once', async () => {
    const service = createFakeTrackingService();
    await using server = await service.listen();
    const environment = { TRACKING_BASE_URL: server.url, TRACKING_API_KEY: 'any' };
    const watch = cli.start(['watch', NUMBER], environment);
    await printed(watch, /no results yet/);
    watch.child.kill('SIGINT');
    expect(await watch.exitCode).toBe(130);
    expect(watch.output.stderr).toBe('');
  });

  describe('output that nobody takes', () => {
    async function startWithTrackers(count: number) {
      const service = createFakeTrackingService();
      const server = await service.listen();
      onTestFinished(() => server.close());
      for (let index = 0; index < count; index += 1)
        await service.fetch(`${service.baseUrl}/trackers`, {
          method: 'POST',
          headers: { authorization: 'Bearer any', 'content-type': 'application/json' },
          body: JSON.stringify({ trackingNumber: `LP${String(index).padStart(9, '0')}CN` }),
        });
      return { TRACKING_BASE_URL: server.url, TRACKING_API_KEY: 'any' };
    }

    it.each(['list --json', 'couriers', 'watch --all --json --interval 1s'])(
      '%s | head -1 → exit code 0, no word',
      async (line) => {
        const environment = await startWithTrackers(5);
        const { exitCode, output } = cli.shell(`cli ${line} | head -1`, environment);
        expect(await exitCode).toBe(0);
        expect(output.stdout.split('\n')).toHaveLength(2);
        expect(output.stderr).toBe('');
      },
    );

    it('a full disk → one line, exit code 1', async () => {
      const environment = await startWithTrackers(1);
      const { exitCode, output } = cli.shell('cli list > /dev/full', environment);
      expect(await exitCode).toBe(1);
      expect(output.stderr).toBe('tracking-client: Could not print: no space left on device (ENOSPC)\n');
    });
  });
});
