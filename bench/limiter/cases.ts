import type { EnforcingServerOptions } from '../../test/support/enforcing-server.ts';

export interface Case {
  readonly name: string;
  readonly server: EnforcingServerOptions;
  /** This client must get at most `refused` responses with 429, and use at least this share of the limit. */
  readonly target?: { readonly refused: number; readonly sharePercent: number };
}

const JITTER_MS = 80;

export const cases: readonly Case[] = [
  {
    name: '10/s fixed',
    server: { mode: 'fixed', limit: 10 },
    target: { refused: 0, sharePercent: 102 },
  },
  {
    name: '10/s sliding, jitter 80 ms',
    server: { mode: 'sliding', limit: 10, jitterMs: JITTER_MS },
    target: { refused: 0, sharePercent: 98 },
  },
  {
    name: '10/s sliding, handler 500 ms',
    server: { mode: 'sliding', limit: 10, handlerMs: 500 },
    target: { refused: 0, sharePercent: 66 },
  },
  {
    name: '10/s sliding counter, jitter 80 ms',
    server: { mode: 'counter', limit: 10, jitterMs: JITTER_MS },
  },
];
