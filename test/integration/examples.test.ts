import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { describeWithRedis } from './services.ts';

const folder = fileURLToPath(new URL('../../examples', import.meta.url));
const root = fileURLToPath(new URL('../..', import.meta.url));
const examples = readdirSync(folder).filter((name) => name.endsWith('.ts'));

/** Needs Redis, and starts the other programs of its folder itself. */
const FLEET = 'fleet/supervisor.ts';

/** The environment without a service or a key: an example must run on its own. */
function bareEnvironment(): NodeJS.ProcessEnv {
  const { TRACKING_BASE_URL: _url, TRACKING_API_KEY: _key, ...rest } = process.env;
  return { ...rest, NO_COLOR: '1' };
}

function run(
  name: string,
  more: NodeJS.ProcessEnv = {},
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ['--import', 'tsx', `examples/${name}`], {
      cwd: root,
      env: { ...bareEnvironment(), ...more },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const text = { stdout: '', stderr: '' };
    child.stdout.on('data', (chunk: Buffer) => {
      text.stdout += chunk.toString();
    });
    child.stderr.on('data', (chunk: Buffer) => {
      text.stderr += chunk.toString();
    });
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, ...text }));
  });
}

describe('each example', () => {
  it.each(examples)(
    '%s run without a key → ends well and prints something',
    { timeout: 60_000 },
    async (name) => {
      const { code, stdout, stderr } = await run(name);
      expect({ code, stderr }).toMatchObject({ code: 0 });
      expect(stdout.trim().split('\n').length).toBeGreaterThan(3);
    },
  );

  it.each([...examples, FLEET])('%s → starts with a comment that says what it shows', (name) => {
    expect(readFileSync(`${folder}/${name}`, 'utf8')).toMatch(/^\/\/ \S+/);
  });
});

await describeWithRedis('the example of several processes', (url) => {
  it('run without a key → all trackers imported without a 429, every event handled once', {
    timeout: 60_000,
  }, async () => {
    const { code, stdout, stderr } = await run(FLEET, { REDIS_URL: url });
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(stdout).toMatch(/in sum: +2000 trackers, 40 requests, .*, 0 times 429/);
    const [, delivered, handled] = /(\d+) events were delivered: (\d+) handled/.exec(stdout) ?? [];
    expect(Number(handled)).toBeGreaterThan(0);
    expect(Number(delivered)).toBe(3 * Number(handled));
  });
});

it('the example of several processes without Redis → says so in one line and ends well', async () => {
  const { code, stdout } = await run(FLEET, { REDIS_URL: 'redis://127.0.0.1:1', CI: '' });
  expect(code).toBe(0);
  expect(stdout.trim()).toBe('No Redis answers at 127.0.0.1:1; set REDIS_URL to run this example.');
});
