// Puts the package.json back that prepack.js has replaced. npm runs this script after it has packed. prepack.js starts it, too, with
// the path of the original and the process id of npm. Then it waits until npm has ended, and does what is left to do.
import { existsSync, readdirSync, renameSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';

const [named, npm] = process.argv.slice(2);

function listOriginals() {
  if (named !== undefined) return existsSync(named) ? [named] : [];
  if (!existsSync('.tmp')) return [];
  return readdirSync('.tmp').flatMap((name) => (/^package\.\d+\.json$/.test(name) ? `.tmp/${name}` : []));
}

function isRunning(id) {
  try {
    return process.kill(id, 0);
  } catch {
    return false;
  }
}

while (named !== undefined && existsSync(named) && isRunning(Number(npm))) await setTimeout(50);
for (const original of listOriginals()) renameSync(original, 'package.json');
