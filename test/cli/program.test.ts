import { trackerInputSchema } from 'tracking-client';
import { createFakeTrackingService } from 'tracking-client/testing';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { run } from '../../src/cli/program.ts';
import { VERSION } from '../../src/version.ts';
import { makeTerminal } from './make-terminal.ts';

async function ran(line: string) {
  const { terminal, output } = makeTerminal();
  const args = line.split(' ').filter((arg) => arg !== '');
  const exitCode = await run(args, terminal);
  return { exitCode, ...output };
}

afterEach(() => {
  vi.unstubAllEnvs();
});

function setEnvironment(baseUrl: string | undefined, apiKey: string | undefined) {
  vi.stubEnv('TRACKING_BASE_URL', baseUrl);
  vi.stubEnv('TRACKING_API_KEY', apiKey);
}

describe('the command', () => {
  it.each(['', 'track', 'watch', 'import', 'list', 'stop', 'resend', 'couriers', 'listen', 'fake'])(
    '%s --help → fits a screen of 80 by 24, exit code 0',
    async (command) => {
      const { exitCode, stdout, stderr } = await ran(`${command} --help`);
      const lines = stdout.trimEnd().split('\n');
      expect(exitCode).toBe(0);
      expect(stderr).toBe('');
      expect(lines[0]).toMatch(new RegExp(`^Usage: tracking-client ${command}`));
      expect(lines.length).toBeLessThanOrEqual(24);
      expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(80);
    },
  );

  it('no arguments → the help on stderr, exit code 2', async () => {
    expect(await ran('')).toMatchObject({
      exitCode: 2,
      stdout: '',
      stderr: expect.stringMatching(/^Usage: tracking-client /),
    });
  });

  it('--version → the version', async () => {
    expect(await ran('--version')).toEqual({ exitCode: 0, stdout: `${VERSION}\n`, stderr: '' });
  });

  it.each([
    ['trak X', "tracking-client: unknown command 'trak' (Did you mean track?); --help tells all\n"],
    ['track', "tracking-client: missing required argument 'number'; --help tells all\n"],
    ['track A B', /^tracking-client: too many arguments for 'track'.*\n$/],
    ['fake --prot 1', "tracking-client: unknown option '--prot' (Did you mean --port?); --help tells all\n"],
    ['fake --port', "tracking-client: option '-p, --port <number>' argument missing; --help tells all\n"],
    ['watch', 'tracking-client: Expected either tracking numbers or `--all`\n'],
    ['watch --all RR123456785CN', 'tracking-client: Expected either tracking numbers or `--all`\n'],
    [
      'watch X --interval 5d',
      'tracking-client: Expected `--interval` to be from 1s to 24h, as in 30s, 15m or 2h, got "5d"\n',
    ],
    ['listen --host=', 'tracking-client: Expected `--host` to be an address or a host name, got ""\n'],
  ])('%s → one line on stderr, exit code 2', async (line, message) => {
    const { exitCode, stdout, stderr } = await ran(line);
    expect(exitCode).toBe(2);
    expect(stdout).toBe('');
    expect(stderr).toEqual(typeof message === 'string' ? message : expect.stringMatching(message));
  });

  it.each([
    'track RR123456785CN',
    'watch --all',
    'import rows.csv',
    'list',
    'stop an-id',
    'resend an-id',
    'couriers',
  ])('%s without a key → one sentence that says what to set, exit code 2', async (line) => {
    setEnvironment('https://api.example.com/public/v1', undefined);
    expect(await ran(line)).toEqual({
      exitCode: 2,
      stdout: '',
      stderr:
        'tracking-client: Set TRACKING_API_KEY to your API key. ' +
        'To try it without any: `npx tracking-client fake` in another terminal\n',
    });
  });

  it('no base URL → one sentence, exit code 2', async () => {
    setEnvironment('', 'a-key');
    const { exitCode, stderr } = await ran('track RR123456785CN');
    expect(exitCode).toBe(2);
    expect(stderr).toMatch(
      /^tracking-client: Set TRACKING_BASE_URL to the service's URL, or give --base-url\./,
    );
  });

  it('a refused key → one line with the code, without the key, exit code 1', async () => {
    const fake = createFakeTrackingService({ apiKeys: ['another'] });
    await using server = await fake.listen();
    setEnvironment(undefined, 'hush-hush');
    const { exitCode, stdout, stderr } = await ran(`track RR123456785CN --base-url ${server.url}`);
    expect(exitCode).toBe(1);
    expect(stdout).toBe('');
    expect(stderr).toMatch(/^tracking-client: .*auth_invalid_api_key.*\n$/);
    expect(stderr).not.toContain('hush');
  });

  it('--help of a command → never the value of a variable', async () => {
    setEnvironment('https://api.example.com/public/v1', 'hush-hush');
    vi.stubEnv('TRACKING_WEBHOOK_SECRET', 'hush-too');
    for (const command of ['track', 'listen', 'fake'])
      expect((await ran(`${command} --help`)).stdout).not.toContain('hush');
  });

  it('import --help → every column that is sent', async () => {
    const { stdout } = await ran('import --help');
    const { recipient: _recipient, settings: _settings, ...columns } = trackerInputSchema.shape;
    for (const name of [...Object.keys(columns), 'recipientEmail', 'recipientName'])
      expect(stdout).toContain(name);
  });

  it.each([
    ['', 2, /with `--allow-insecure-http`\), got http:\n$/],
    ['--allow-insecure-http', 1, /^tracking-client: /],
  ])('track over http: to another host, with the flag %j → exit code %i', async (flag, code, message) => {
    setEnvironment('http://fake.invalid:4010/v1', 'any');
    vi.stubEnv('TRACKING_ALLOW_INSECURE_HTTP', '0');
    vi.stubGlobal('fetch', () => Promise.resolve(new Response('{}', { status: 401 })));
    const { exitCode, stderr } = await ran(`track RR123456785CN ${flag}`);
    vi.unstubAllGlobals();
    expect(exitCode).toBe(code);
    expect(stderr).toMatch(message);
    expect(stderr).not.toMatch(/allowInsecureHttp|`baseUrl`/);
  });

  it.each(['1', 'true'])('TRACKING_ALLOW_INSECURE_HTTP=%s → http: is taken', async (value) => {
    setEnvironment('http://fake.invalid:4010/v1', 'any');
    vi.stubEnv('TRACKING_ALLOW_INSECURE_HTTP', value);
    vi.stubGlobal('fetch', () => Promise.resolve(new Response('{}', { status: 401 })));
    expect((await ran('track RR123456785CN')).exitCode).toBe(1);
    vi.unstubAllGlobals();
  });

  it('a request that is sent again → one line that says why in words', async () => {
    const fake = createFakeTrackingService();
    fake.shipment('RR123456785CN').deliver();
    fake.fail('trackers.track', { kind: 'reset' });
    await using server = await fake.listen();
    setEnvironment(server.url, 'any');
    const { exitCode, stderr } = await ran('track RR123456785CN');
    expect(exitCode).toBe(0);
    expect(stderr).toMatch(/^POST \S+ got no response: [^\n]+; attempt 2 follows\n$/);
  });

  it('hints → those of the tracker that is created', async () => {
    const fake = createFakeTrackingService();
    fake.shipment('RR123456785CN').deliver();
    await using server = await fake.listen();
    setEnvironment(server.url, 'any');
    await ran('track RR123456785CN --courier us-post --courier cn-post --destination US --post-code 94901');
    expect(fake.requests[0]?.body).toEqual({
      trackingNumber: 'RR123456785CN',
      courierCode: ['us-post', 'cn-post'],
      destinationCountryCode: 'US',
      destinationPostCode: '94901',
    });
  });
});
