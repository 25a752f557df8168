import { PassThrough } from 'node:stream';
import { createFakeTrackingService, type FakeTrackingService } from 'tracking-client/testing';
import { vi } from 'vitest';
import { createProgram, run } from '../../src/cli/program.ts';
import { createTerminal } from '../../src/cli/terminal.ts';

/**
 * Makes a terminal that remembers what was printed.
 *
 * @param options - `isLive`: true for a terminal of a person, with a number of columns, false for a pipe; an object tells each stream
 */
export function makeTerminal({
  isLive = false as boolean | Readonly<Record<'stdout' | 'stderr', boolean>>,
  columns = 100,
  hasColours = false,
} = {}) {
  if (!hasColours) vi.stubEnv('NO_COLOR', '1');
  const output = { stdout: '', stderr: '' };
  const controller = new AbortController();
  const makeStream = (name: keyof typeof output) => {
    const through = new PassThrough();
    through.on('data', (chunk: Buffer) => {
      output[name] += chunk.toString();
    });
    const isScreen = typeof isLive === 'boolean' ? isLive : isLive[name];
    return Object.assign(through, isScreen ? { isTTY: true as const, columns } : {});
  };
  return {
    terminal: createTerminal(makeStream('stdout'), makeStream('stderr'), controller.signal),
    /** The output so far. */
    output: output as Readonly<typeof output>,
    /** The lines on standard output. */
    lines: () => output.stdout.split('\n').slice(0, -1),
    /** Presses Ctrl-C. */
    interrupt: () => controller.abort(new Error('Ctrl-C')),
  };
}

/** Runs a command line in a terminal of its own. */
export async function runLine(line: string, options?: Parameters<typeof makeTerminal>[0]) {
  const { terminal, output, lines } = makeTerminal(options);
  const exitCode = await run(line.split(' ').filter(Boolean), terminal);
  return { exitCode, ...output, lines };
}

/** Resolves to the URL at which the command `listen` receives webhooks, when it has printed the URL. */
export function webhookUrlIn(output: { readonly stdout: string }): Promise<string> {
  const findUrl = () => /http:\/\/127\.0\.0\.1:\d+\/webhooks/.exec(output.stdout)?.[0];
  return vi.waitUntil(findUrl, { timeout: 60_000 });
}

/** Makes the environment name a fake service, which gets every request without a network. */
export function connect(fake: FakeTrackingService = createFakeTrackingService()): FakeTrackingService {
  setEnvironment(fake.baseUrl, fake.apiKey);
  vi.stubGlobal('fetch', fake.fetch);
  return fake;
}

/** Sets what the command reads from its environment. */
export function setEnvironment(baseUrl: string | undefined, apiKey: string | undefined): void {
  vi.stubEnv('TRACKING_BASE_URL', baseUrl);
  vi.stubEnv('TRACKING_API_KEY', apiKey);
}

/** Parses a command line without running it; returns the flags of the subcommand. */
export function parseFlags<Flags>(args: readonly string[]): Flags {
  const program = createProgram(makeTerminal().terminal);
  for (const command of program.commands) command.action(() => {});
  program.parse([...args], { from: 'user' });
  const command = program.commands.find((candidate) => candidate.name() === args[0]) ?? program;
  // The cast is right if the caller names flags that the command has.
  return command.opts() as Flags;
}
