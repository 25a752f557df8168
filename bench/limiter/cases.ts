import type { EnforcingServerOptions } from './enforcing-server.ts';

/** A service and a number of calls to make, and what we want to see. */
export interface Case {
  readonly name: string;
  readonly server: EnforcingServerOptions;
  /** Calls a contender makes, over all its processes. */
  readonly calls: number;
  /** Processes that share the account and know nothing of each other. Default 1. */
  readonly processes?: number;
  /** For this client: answers of 429, and percent of the limit. */
  readonly target?: { readonly refused: number; readonly sharePercent?: number };
}

const JITTER_MS = 80;

/** The case whose first run is drawn. */
export const CHART_CASE = '10/s sliding, jitter 80 ms';

export const cases: readonly Case[] = [
  ...[
    { limit: 10, calls: 200 },
    { limit: 3, calls: 30 },
  ].flatMap(({ limit, calls }): Case[] =>
    (['fixed', 'sliding'] as const).flatMap((mode) => [
      {
        name: `${limit}/s ${mode}`,
        server: { mode, limit },
        calls,
        target: { refused: 0, sharePercent: 102 },
      },
      {
        name: `${limit}/s ${mode}, jitter ${JITTER_MS} ms`,
        server: { mode, limit, jitterMs: JITTER_MS },
        calls,
        target: { refused: 0, sharePercent: 98 },
      },
    ]),
  ),
  {
    name: '10/s sliding, cold sockets +250 ms',
    server: { mode: 'sliding', limit: 10, coldSocketMs: 250 },
    calls: 200,
    target: { refused: 0, sharePercent: 100 },
  },
  {
    name: '10/s sliding, jitter 300 ms',
    server: { mode: 'sliding', limit: 10, jitterMs: 300 },
    calls: 200,
    target: { refused: 0, sharePercent: 85 },
  },
  {
    name: '10/s sliding, handler 500 ms',
    server: { mode: 'sliding', limit: 10, handlerMs: 500 },
    calls: 200,
    target: { refused: 0, sharePercent: 66 },
  },
  {
    name: '10/s sliding counter, jitter 80 ms',
    server: { mode: 'counter', limit: 10, jitterMs: JITTER_MS },
    calls: 200,
  },
  {
    name: '10/s token bucket, jitter 80 ms',
    server: { mode: 'bucket', limit: 10, jitterMs: JITTER_MS },
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
  ...(['fixed', 'sliding'] as const).map(
    (mode): Case => ({
      name: `10/s ${mode}, jitter ${JITTER_MS} ms, two processes without Redis`,
      server: { mode, limit: 10, jitterMs: JITTER_MS },
      calls: 200,
      processes: 2,
      target: { refused: 30, sharePercent: 75 },
    }),
  ),
];
