#!/usr/bin/env node
import { systemClock } from '../common/clock.ts';
import { run } from './program.ts';
import { createTerminal, OutputError } from './terminal.ts';

/** With npx, one Ctrl-C arrives twice: from the terminal and from npx. So two signals within this time count as one. */
const SAME_SIGNAL_MS = 500;

const { stdout, stderr } = process;
const controller = new AbortController();
let stoppedAtMs = Number.POSITIVE_INFINITY;
const stop = (signal: NodeJS.Signals) => {
  if (systemClock.now() - stoppedAtMs > SAME_SIGNAL_MS) {
    // The signal's default action ends the process even while a read blocks a thread; `process.exit` waits for the read.
    process.off(signal, stop).kill(process.pid, signal);
  }
  stoppedAtMs = Math.min(stoppedAtMs, systemClock.now());
  controller.abort();
};
process.on('SIGINT', stop);
process.on('SIGTERM', stop);
stdout.on('error', (error) => controller.abort(new OutputError(error)));
// Ignore errors of stderr: there is nowhere left to report them.
stderr.on('error', () => {});

const terminal = createTerminal(stdout, stderr, controller.signal);
void run(process.argv.slice(2), terminal).then((exitCode) => {
  stdout.write('', (error) => {
    // The callback may get the error of the last line before the `error` event fires.
    if (error) controller.abort(new OutputError(error));
    const { reason } = controller.signal;
    const outputError = reason instanceof OutputError ? reason : undefined;
    if (outputError?.message) stderr.write(`tracking-client: ${outputError.message}\n`);
    // With `process.exitCode` alone, connections that are kept alive would hold the process for seconds.
    process.exit(exitCode || outputError?.exitCode);
  });
});
