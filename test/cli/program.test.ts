import { trackerInputSchema } from 'tracking-client';
import { createFakeTrackingService } from 'tracking-client/testing';
import { describe, expect, it, vi } from 'vitest';
import { run } from '../../src/cli/program.ts';
import { VERSION } from '../../src/version.ts';
import { readDocument } from '../readme/support/documents.ts';
import { connect, makeTerminal, runLine, setEnvironment } from './make-terminal.ts';

const COMMANDS = [
  'track',
  'show',
  'watch',
  'import',
  'list',
  'stop',
  'resend',
  'history',
  'couriers',
  'doctor',
  'listen',
  'fake',
];

describe('the command', () => {
  it.each(['', ...COMMANDS])(
    '%s --help → at most 25 lines of 80 characters (fake: 35), exit code 0',
    async (command) => {
      const { exitCode, stdout, stderr } = await runLine(`${command} --help`);
      const lines = stdout.trimEnd().split('\n');
      expect([exitCode, stderr]).toEqual([0, '']);
      expect(lines[0]).toMatch(new RegExp(`^Usage: tracking-client ${command}`));
      expect(lines.length).toBeLessThanOrEqual(command === 'fake' ? 35 : 25);
      expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(80);
    },
  );

  it('--help → all commands but `listen` and `fake` read the URL and the key, and all but `fake` have --json', async () => {
    for (const command of COMMANDS) {
      const { stdout } = await runLine(`${command} --help`);
      expect(/TRACKING_BASE_URL/.test(stdout)).toBe(!['listen', 'fake'].includes(command));
      expect(/--json/.test(stdout)).toBe(command !== 'fake');
    }
  });

  it('no arguments → the help on stderr, exit code 2', async () => {
    const stderr = expect.stringMatching(/^Usage: tracking-client /);
    expect(await runLine('')).toMatchObject({ exitCode: 2, stdout: '', stderr });
  });

  it('show, after a delivery → the lines that the README shows, apart from dates and times', async () => {
    const sample = /^\$ npx --no-install tracking-client (show .*)\n([\s\S]*?)\n```$/m.exec(
      readDocument('README.md'),
    );
    const [, line = '', shown = ''] = sample ?? [];
    // Other days have one digit, or are in another year, and look different.
    vi.useFakeTimers({ now: new Date('2026-11-28T18:24:00Z'), toFake: ['Date'] });
    const fake = connect(createFakeTrackingService({ resultsDelayMs: 0, limits: false }));
    fake.play('RR123456785CN', 'delivered', { speed: Number.POSITIVE_INFINITY });
    await runLine('track RR123456785CN');
    const { lines } = await runLine(line);
    const undated = (text: string) => text.replace(/\d\d \w{3}/, 'date').replace(/\d\d:\d\d/, 'time');
    const printed = lines().map(undated);
    const expected = shown.split('\n').filter((text) => text.trim() !== '…');
    expect(expected).toHaveLength(3);
    expect(printed).toEqual(expect.arrayContaining(expected.map(undated)));
    expect([printed[0], printed.at(-1)]).toEqual([expected[0], undated(expected.at(-1) ?? '')]);
  });

  it('--version → the version', async () => {
    expect(await runLine('--version')).toMatchObject({ exitCode: 0, stdout: `${VERSION}\n`, stderr: '' });
  });

  it.each([
    ['trak X', "tracking-client: unknown command 'trak' (Did you mean track?); see --help\n"],
    ['track', "tracking-client: missing required argument 'number'; see --help\n"],
    ['track A B', /^tracking-client: too many arguments for 'track'.*\n$/],
    ['fake --prot 1', "tracking-client: unknown option '--prot' (Did you mean --port?); see --help\n"],
    ['fake --port', "tracking-client: option '-p, --port <number>' argument missing; see --help\n"],
    ['watch', 'tracking-client: `watch` needs tracking numbers, or --all for every tracker\n'],
    ['watch --all RR123456785CN', 'tracking-client: `watch` takes tracking numbers or --all, not both\n'],
    [
      'watch X --interval 5d',
      'tracking-client: Expected `--interval` to be a time from 1s to 24h, as in 30s, 15m or 2h, got "5d"\n',
    ],
    [
      'fake --play lost',
      /argument 'lost' is invalid\. Allowed choices are pending, info_received, in_transit, .*, customs, never-found, none; see --help\n$/,
    ],
    [
      'listen --host=',
      'tracking-client: Expected `--host` to be an address or a host name, got an empty string\n',
    ],
  ])('%s → one line on stderr, exit code 2', async (line, message) => {
    const { exitCode, stdout, stderr } = await runLine(line);
    expect([exitCode, stdout]).toEqual([2, '']);
    expect(stderr).toEqual(typeof message === 'string' ? message : expect.stringMatching(message));
  });

  it.each([
    ['fake --port hush', 'Expected `--port` to be a whole number from 0 to 65535'],
    ['fake --port 1234hush', 'Expected `--port` to be a whole number from 0 to 65535'],
    ['fake --speed hush', 'Expected `--speed` to be a number of at least 1'],
    ['listen --host hush!', 'Expected `--host` to be an address or a host name'],
    ['watch X --interval hush', 'Expected `--interval` to be a time from 1s to 24h, as in 30s, 15m or 2h'],
    ['import hush.csv --delimiter hush', 'Expected `--delimiter` to be one character, or tab'],
  ])('%s → the rule without the value, exit code 2', async (line, message) => {
    expect(await runLine(line)).toMatchObject({ exitCode: 2, stderr: `tracking-client: ${message}\n` });
  });

  it.each([
    ['list --apikey=hush', "unknown option '--apikey' with a value"],
    ['list --API_KEY=hush', "unknown option '--API_KEY' with a value"],
    ['list --api_key=hush', "unknown option '--api_key' with a value"],
    ['list --api-keyHUSH', "unknown option '--api-key' with a value"],
    ['listen --secrets=hush', "unknown option '--secrets' with a value"],
    ['listen --api-key=hush', "unknown option '--api-key' with a value"],
    ['listen --secrets hush', "unknown option '--secrets' (Did you mean --secret?)"],
    ['track RR123456785CN --apikey hush', "unknown option '--apikey' (Did you mean --api-key?)"],
    ['--apikey=hush list', "unknown option '--apikey' with a value"],
    ['--api-key hush list', "unknown option '--api-key'"],
    ['list --json=hush', "unknown option '--json' with a value"],
    ['list --api:hush', "unknown option '--api' with a value"],
    ["list --apikey='hush'", "unknown option '--apikey' with a value"],
    ['list --apikey=a=hush', "unknown option '--apikey' with a value"],
    ["list --apikey='(Did-you-mean-hush?)'", "unknown option '--apikey' with a value"],
    ['list --=hush', "unknown option '-' with a value"],
    ['list -khush', "unknown option '-k' with a value"],
    ['list -k=hush', "unknown option '-k' with a value"],
    ['list -k hush', "unknown option '-k'"],
    ['list --apikey=hush hush', "unknown option '--apikey' with a value"],
    ['list hush --apikey=hush', "unknown option '--apikey' with a value"],
    ['list hush', "too many arguments for 'list'. Expected 0 arguments but got 1"],
    ['list --api-key = hush', "too many arguments for 'list'. Expected 0 arguments but got 1"],
    ['TRACKING_API_KEY=hush list', "unknown command 'TRACKING_API_KEY' with a value"],
    ['api-key=hush', "unknown command 'api-key' with a value"],
    ['hush', 'unknown command'],
    ['hush list', 'unknown command'],
  ])('%s → the mistake without the value, exit code 2', async (line, message) => {
    const stderr = `tracking-client: ${message}; see --help\n`;
    expect(await runLine(line)).toMatchObject({ exitCode: 2, stdout: '', stderr });
  });

  it('an unknown option with a value of several words or lines → the name alone, exit code 2', async () => {
    for (const end of [' hush', '=hush hush', '\nhush', '=\nhush', '\u001b[2Jhush']) {
      const { terminal, output } = makeTerminal();
      expect(await run(['list', `--apikey${end}`], terminal)).toBe(2);
      expect(output.stderr).toMatch(
        /^tracking-client: unknown option '--apikey' with a value; see --help\n$/,
      );
    }
  });

  it.each([
    'track A',
    'show A',
    'watch --all',
    'import a.csv',
    'list',
    'stop an-id',
    'resend an-id',
    'couriers',
  ])('%s without a key → one sentence that names the missing setting, exit code 2', async (line) => {
    setEnvironment('https://api.example.com/public/v1', undefined);
    const stderr =
      'tracking-client: The API key is missing; set TRACKING_API_KEY. ' +
      'To try the command without an account, run `npx --no-install tracking-client fake` in another terminal\n';
    expect(await runLine(line)).toMatchObject({ exitCode: 2, stdout: '', stderr });
  });

  it('a key of white space → the key is missing, exit code 2', async () => {
    setEnvironment('https://api.example.com/public/v1', '  ');
    const stderr = expect.stringMatching(/^tracking-client: The API key is missing; set TRACKING_API_KEY\. /);
    expect(await runLine('list')).toMatchObject({ exitCode: 2, stdout: '', stderr });
  });

  it('a flag with a value that breaks a rule of the service → the message names the flag, exit code 2', async () => {
    connect(createFakeTrackingService());
    for (const [line, start] of [
      ['track LA680658838NL --destination Germany', 'Expected `--destination` to be a country code '],
      [
        'track LA680658838NL --courier a --courier b --courier c --courier d',
        'Expected `--courier` to have at most 3 codes, got 4\n',
      ],
      ['watch LA680658838NL --destination Germany', 'LA680658838NL  Expected `--destination` to be '],
    ] as const)
      expect((await runLine(line)).stderr).toMatch(new RegExp(`^(tracking-client: )?${start}`));
  });

  it('more API keys than a fake accepts → one sentence, exit code 2', async () => {
    const { exitCode, stderr } = await runLine(`fake${' --api-key k'.repeat(21)}`);
    expect([exitCode, stderr]).toEqual([
      2,
      expect.stringMatching(/^tracking-client: Expected `--api-key` to be given at most 20 times\n$/),
    ]);
  });

  it('no base URL → one sentence, exit code 2', async () => {
    setEnvironment('', 'a-key');
    const { exitCode, stderr } = await runLine('track RR123456785CN');
    expect(exitCode).toBe(2);
    expect(stderr).toContain(
      ' The URL of the service is missing; set TRACKING_BASE_URL, or pass --base-url.',
    );
  });

  it.each([
    ['TRACKING_BASE_URL', 'not-a-url', '', 'a string of 9 characters'],
    ['`--base-url`', 'https://other.test', ' --base-url api.example.com', "'api.example.com'"],
    ['`--base-url`', undefined, ' --base-url me:hush@host', 'a string of 12 characters'],
  ])(
    '%s is wrong → named, with the value only if it is a host, exit code 2',
    async (source, variable, flag, got) => {
      setEnvironment(variable, 'a-key');
      const stderr =
        `tracking-client: ${source} (${got}) is not an https:// URL; ` +
        'write it as in https://api.example.com/public/v1\n';
      expect(await runLine(`couriers${flag}`)).toMatchObject({ exitCode: 2, stderr });
    },
  );

  it('a refused key → one line with the error code and without the key, exit code 1', async () => {
    const { baseUrl } = connect(createFakeTrackingService({ apiKeys: ['another'] }));
    setEnvironment(undefined, 'hush-hush');
    const { exitCode, stdout, stderr } = await runLine(`track RR123456785CN --base-url ${baseUrl}`);
    expect(exitCode).toBe(1);
    expect(stdout).toBe('');
    expect(stderr).toMatch(/^tracking-client: .*auth_invalid_api_key.*\n$/);
    expect(stderr).not.toContain('hush');
  });

  it('--help of a command → no value of an environment variable is shown', async () => {
    setEnvironment('https://api.example.com/public/v1', 'hush-hush');
    vi.stubEnv('TRACKING_WEBHOOK_SECRET', 'hush-too');
    for (const command of ['track', 'listen', 'fake'])
      expect((await runLine(`${command} --help`)).stdout).not.toContain('hush');
  });

  it('import --help → names every column that is sent', async () => {
    const { stdout } = await runLine('import --help');
    const { recipient: _recipient, settings: _settings, ...columns } = trackerInputSchema.shape;
    for (const name of [...Object.keys(columns), 'recipientEmail', 'recipientName'])
      expect(stdout).toContain(name);
  });

  it.each([
    ['', '0', 2, / begins with http:.*; use https:\/\/, or set `--allow-insecure-http`\n$/],
    ['--allow-insecure-http', '0', 1, /^tracking-client: .* 401/],
    ['', 'true', 1, /^tracking-client: .* 401/],
    ['', '1', 1, /^tracking-client: .* 401/],
  ])(
    'http: to another host, the flag %j and the variable %s → exit code %i',
    async (flag, variable, code, message) => {
      setEnvironment('http://fake.invalid:4010/v1', 'any');
      vi.stubEnv('TRACKING_ALLOW_INSECURE_HTTP', variable);
      vi.stubGlobal('fetch', () => Promise.resolve(new Response('{}', { status: 401 })));
      const { exitCode, stderr } = await runLine(`track RR123456785CN ${flag}`);
      expect(exitCode).toBe(code);
      expect(stderr).toMatch(message);
      expect(stderr).not.toMatch(/allowInsecureHttp|`baseUrl`/);
    },
  );

  it('an unreachable service → a line for each retry, then a line with the reason, no stack, exit code 1', async () => {
    setEnvironment('http://127.0.0.1:9/public/v1', 'hush-hush');
    const cause = new Error('connect ECONNREFUSED 127.0.0.1:9');
    vi.stubGlobal('fetch', () => Promise.reject(new TypeError('fetch failed', { cause })));
    vi.useFakeTimers();
    const ended = runLine('track RR123456785CN');
    await vi.advanceTimersByTimeAsync(60_000);
    vi.useRealTimers();
    const { exitCode, stderr } = await ended;
    expect(exitCode).toBe(1);
    expect(stderr.trimEnd().split('\n').at(-1)).toMatch(/^tracking-client: .*ECONNREFUSED/);
    expect(stderr).not.toMatch(/^ +at |hush/m);
  });

  it('a request that is sent again → one line that gives the reason in words', async () => {
    const fake = connect();
    fake.shipment('RR123456785CN').deliver();
    fake.fail('trackers.track', { kind: 'reset' });
    const { exitCode, stderr } = await runLine('track RR123456785CN');
    expect(exitCode).toBe(0);
    expect(stderr).toMatch(
      /^POST \S+ got no response: [^\n]+; the client retries after at least \d+ m?s \(attempt 2\)\n$/,
    );
  });
});
