import { VERSION } from './version.ts';

/** Name and version of this package and of the runtime, e.g. `tracking-client/0.1.0 node/20.19.0`. */
export function defaultUserAgent(): string {
  const { process } = globalThis;
  const runtime = process?.versions?.['bun'] ?? process?.versions?.['deno'];
  const name = process?.versions?.['bun'] !== undefined ? 'bun' : runtime === undefined ? 'node' : 'deno';
  const nodeVersion = process?.versions?.node;
  const own = `tracking-client/${VERSION}`;
  return nodeVersion === undefined ? own : `${own} ${name}/${runtime ?? nodeVersion}`;
}
