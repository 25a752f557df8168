// What `npm run shop` does in a terminal, with a week in a few seconds.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';

/** A busy machine takes minutes to start five processes and a database. */
const TIMEOUT_MS = 300_000;
const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** @param seconds - the length of the week */
async function playShop(seconds: number) {
  const folder = await mkdtemp(join(tmpdir(), 'play-shop-test-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const child = spawn('npm', ['run', 'shop', '--', String(seconds)], {
    cwd: ROOT,
    detached: true, // a process group, as in a terminal
    env: { ...process.env, TMPDIR: folder },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const hasEnded = once(child, 'close');
  onTestFinished(async () => {
    endGroup(child, 'SIGTERM');
    await hasEnded;
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
  await expect.poll(() => output, { timeout: TIMEOUT_MS }).toMatch(/Open this page.* http:\S+\n/);
  const [page = ''] = /http:\S+/.exec(output) ?? [];
  return {
    child,
    page,
    readOutput: () => output,
    /** Waits for the end, and returns the exit code. */
    async waitForEnd(): Promise<unknown> {
      const [code] = await hasEnded;
      return code;
    },
    /** The folders of the shop that exist. `tsx` keeps a folder of its own. */
    findFolders: async () => (await readdir(folder)).filter((name) => name.startsWith('play-shop')),
  };
}

function endGroup({ pid, exitCode, signalCode }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid !== undefined && exitCode === null && signalCode === null) process.kill(-pid, signal);
}

it('npm run shop → sixty orders, one mail for each status, refused orders with the reason, and nothing is left', {
  timeout: TIMEOUT_MS,
}, async () => {
  const { readOutput, waitForEnd, findFolders, page } = await playShop(6);
  expect(await findFolders()).toHaveLength(1);
  expect(await waitForEnd()).toBe(0);
  const mails = readOutput().match(/^Mail to .*/gm) ?? [];
  expect(mails).toContain(`Mail to 1001@example.com: Your order 1001: Delivered. ${page}`);
  expect(new Set(mails).size).toBe(mails.length);
  for (const [count, words] of [
    [38, 'Delivered'],
    [8, 'Held up'],
    [3, 'Ready for pickup'],
  ] as const)
    expect(mails.filter((mail) => mail.includes(`: ${words}. http`))).toHaveLength(count);
  expect(readOutput()).toMatch(/Order 1008 was refused: .* digits/);
  expect(readOutput()).toMatch(
    /60 orders after a week: Refused 3, Waiting for news 8, Delivered 38, Held up 8, Ready for pickup 3\n$/,
  );
  expect(await findFolders()).toEqual([]);
  await expect(fetch(page)).rejects.toThrow();
});

it('npm run shop and Ctrl-C → ends without an error, and nothing is left', {
  timeout: TIMEOUT_MS,
}, async () => {
  const { child, waitForEnd, readOutput, findFolders, page } = await playShop(600);
  expect((await fetch(page)).status).toBe(200);
  endGroup(child, 'SIGINT');
  await waitForEnd();
  expect(readOutput()).not.toMatch(/error/i);
  expect(await findFolders()).toEqual([]);
  await expect(fetch(page)).rejects.toThrow();
});
