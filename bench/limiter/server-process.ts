import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { EnforcingServer, EnforcingServerOptions, LogEntry } from './enforcing-server.ts';

/** Starts the enforcing server in a process of its own, so that its timing and ours do not disturb each other. */
export async function forkEnforcingServer(options: EnforcingServerOptions): Promise<EnforcingServer> {
  const { limitChange, ports = [0] } = options;
  const child = fork(
    fileURLToPath(new URL('./enforcing-server.ts', import.meta.url)),
    [
      ...['--mode', options.mode, '--limit', String(options.limit)],
      ...['--jitter-ms', String(options.jitterMs ?? 0)],
      ...['--cold-socket-ms', String(options.coldSocketMs ?? 0)],
      ...['--handler-ms', String(options.handlerMs ?? 0)],
      ...(limitChange ? ['--limit-change', `${limitChange.afterRequests}:${limitChange.limit}`] : []),
      ...ports.flatMap((port) => ['--port', String(port)]),
    ],
    { stdio: 'inherit' },
  );
  const baseUrls = await new Promise<readonly string[]>((resolve, reject) => {
    // Sound: the server's first and only message is this one.
    child.once('message', (message) => resolve((message as Pick<EnforcingServer, 'baseUrls'>).baseUrls));
    child.once('exit', (code) => reject(new Error(`Expected the server to start, got exit code ${code}`)));
  });
  return {
    baseUrls,
    close: async () => {
      const exited = new Promise((resolve) => child.once('exit', resolve));
      child.disconnect();
      await exited;
    },
  };
}

/** What an account sent, as the server saw it, in order. */
export async function readLog(baseUrl: string, account: string): Promise<LogEntry[]> {
  const response = await fetch(new URL('/log', baseUrl), { headers: { authorization: `Bearer ${account}` } });
  // Sound: our own server answers with its log.
  const log = (await response.json()) as LogEntry[];
  return log.toSorted((a, b) => a.at - b.at);
}
