import { run } from './program.ts';
import { coloursFor, EXIT } from './terminal.ts';

/** One Ctrl-C reaches a program twice, from the terminal and from npx; a second Ctrl-C, later than this, does not wait. */
const SAME_SIGNAL_MS = 500;

/** Runs the command in this process, and ends the process with its exit code. */
export function start(name: string): void {
  const { stdout, stderr, env } = process;
  const controller = new AbortController();
  let stoppedAtMs = Number.POSITIVE_INFINITY;
  const stop = () => {
    if (performance.now() - stoppedAtMs > SAME_SIGNAL_MS) process.exit(EXIT.interrupted);
    stoppedAtMs = Math.min(stoppedAtMs, performance.now());
    controller.abort();
  };
  process.on('SIGINT', stop);
  process.on('SIGTERM', stop);
  // A reader that has seen enough, as `head`, ends the command as Ctrl-C does: an import still writes its failures down.
  stdout.on('error', () => controller.abort());
  const colours = coloursFor(stdout.isTTY === true, env);
  void run(name, process.argv.slice(2), { stdout, stderr, colours, signal: controller.signal }).then(
    // Not `exitCode`: connections that are kept alive would hold the process for seconds.
    (exitCode) => stdout.write('', () => process.exit(exitCode)),
  );
}
