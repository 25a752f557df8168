import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { bundled } from '../../scripts/support/bundled.ts';
import { describeWithAnyPostgres } from '../integration/services.ts';
import { runExample } from './run-example.ts';

const folder = fileURLToPath(new URL('../../examples', import.meta.url));
const examples = readdirSync(folder).filter((name) => name.endsWith('.ts'));
const parts = readdirSync(`${folder}/to-copy`);

/** The status of a parcel whose newest event is a scan that was noted after the delivery. */
const LAST_LINES: Readonly<Record<string, RegExp>> = {
  'webhook-express.ts': /RR123456785CN is now: delivered/,
  'webhook-postgres-inbox.ts': /'LA680658838NL' │ 5 +│ 'delivered'.*\n.*'RR123456785CN' │ 5 +│ 'delivered'/,
};

describe('each example', () => {
  // Examples run at the same time, because each waits most of its time for its own service.
  it.concurrent.each(examples)(
    '%s run without a key → prints something, exit code 0',
    { timeout: 60_000 },
    async (name) => {
      const { code, stdout, stderr } = await runExample([await bundled(`examples/${name}`)]);
      expect({ code, stderr }).toMatchObject({ code: 0 });
      expect(stdout.trim().split('\n').length).toBeGreaterThan(3);
      expect(stdout).toMatch(LAST_LINES[name] ?? /\S/);
    },
  );

  it.each([...examples, 'fleet/supervisor.ts'])(
    '%s → starts with a comment whose last line is the command that runs it',
    (name) => {
      const [comment = ''] = readFileSync(`${folder}/${name}`, 'utf8').split(/^import /m);
      const [, command = ''] = /Run: (.+)/.exec(comment) ?? [];
      expect(command === 'npm run demo' ? manifest.scripts.demo : command).toContain(`tsx examples/${name}`);
    },
  );
});

await describeWithAnyPostgres('the example with PostgreSQL', (create) => {
  it('run with the URL of a database → every event counted once there, exit code 0', async () => {
    const { url, drop } = await create();
    onTestFinished(drop);
    const program = await bundled('examples/webhook-postgres-inbox.ts');
    const { code, stdout, stderr } = await runExample([program, url]);
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(stdout).toContain(`are in the PostgreSQL at ${new URL(url).host}.`);
    expect(stdout).toContain('0 lost; 5 events happened to each parcel');
  });
});

describe('each recipe in the examples', () => {
  it.each(parts)('%s → is used by an example, and contains no code of that example', (name) => {
    const stages = examples.map((example) => readFileSync(`${folder}/${example}`, 'utf8'));
    expect(stages.filter((stage) => stage.includes(`'./to-copy/${name}'`))).toHaveLength(1);
    const part = readFileSync(`${folder}/to-copy/${name}`, 'utf8');
    expect(part).toMatch(/^\/\/ \S+/);
    expect(part).not.toMatch(/tracking-client\/testing|picocolors|from '\./);
  });
});
