import type { EnforcingServerOptions } from './enforcing-server.ts';

export interface Case {
  readonly name: string;
  readonly server: EnforcingServerOptions;
  /** Number of calls that each contender makes. */
  readonly calls: number;
  /** This client must get at most `refused` responses with 429, and use at least this share of the limit. */
  readonly target?: { readonly refused: number; readonly sharePercent: number };
}

const JITTER_MS = 80;

const windows = [10, 3].flatMap((limit) =>
  (['fixed', 'sliding'] as const).flatMap((mode) =>
    [0, JITTER_MS].map(
      (jitterMs): Case => ({
        name: `${limit}/s ${mode}${jitterMs > 0 ? `, jitter ${jitterMs} ms` : ''}`,
        server: { mode, limit, jitterMs },
        calls: limit === 10 ? 200 : 30,
        target: { refused: 0, sharePercent: jitterMs > 0 ? 98 : 102 },
      }),
    ),
  ),
);

const slowNetworks: Case[] = [
  { name: 'cold sockets +250 ms', server: { coldSocketMs: 250 }, sharePercent: 100 },
  { name: 'jitter 300 ms', server: { jitterMs: 300 }, sharePercent: 85 },
  { name: 'handler 500 ms', server: { handlerMs: 500 }, sharePercent: 66 },
].map(({ name, server, sharePercent }) => ({
  name: `10/s sliding, ${name}`,
  server: { mode: 'sliding', limit: 10, ...server },
  calls: 200,
  target: { refused: 0, sharePercent },
}));

export const cases: readonly Case[] = [
  ...windows,
  ...slowNetworks,
  {
    name: '10/s sliding counter, jitter 80 ms',
    server: { mode: 'counter', limit: 10, jitterMs: JITTER_MS },
    calls: 200,
  },
  {
    name: '10/s sliding, announced down to 5/s halfway',
    server: {
      mode: 'sliding',
      limit: 10,
      jitterMs: JITTER_MS,
      limitChange: { afterRequests: 100, limit: 5 },
    },
    calls: 200,
    target: { refused: 3, sharePercent: 55 },
  },
];
