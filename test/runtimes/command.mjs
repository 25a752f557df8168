// Starts `tracking-client fake` with the runtime that the arguments name, sends it requests over HTTP, and stops it.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { runChecks } from './checks/run-checks.cjs';

const [program, ...args] = process.argv.slice(2);

await runChecks({
  'the command → serves requests, and stops with exit code 0': async () => {
    const command = spawn(program, [...args, 'fake', '--port', '0'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    try {
      let baseUrl;
      for await (const line of createInterface({ input: command.stdout })) {
        baseUrl ??= /Base URL +(\S+)/.exec(line)?.[1];
        if (line.includes('Ctrl-C')) break;
      }
      const response = await fetch(`${baseUrl}/couriers`, { headers: { authorization: 'Bearer any' } });
      assert.equal(response.status, 200);
      assert.ok((await response.json()).data.couriers.length > 0);
      command.kill('SIGINT');
      assert.deepEqual(await once(command, 'exit'), [0, null]);
    } finally {
      command.kill('SIGKILL');
    }
  },
});
