import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** The environment without a service or a key: an example must run on its own. */
function bareEnvironment(): NodeJS.ProcessEnv {
  const { TRACKING_BASE_URL: _url, TRACKING_API_KEY: _key, ...rest } = process.env;
  return { ...rest, NO_COLOR: '1' };
}

/** Runs Node with these arguments, and with more in its environment, to the end. */
export function runExample(
  args: readonly string[],
  more: NodeJS.ProcessEnv = {},
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, {
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
