import { markdownTable } from '../../scripts/support/markdown-table.ts';
import { type HeapUse, INBOXES, MAX_UPLINK_MS, SIGNALS, TOTAL_TIMEOUT_MS, wholeMiB } from './messages.ts';
import type { Stall } from './pulse.ts';
import type { SoakResult } from './run.ts';

/** A promise, and whether it was kept; undefined where the run was too short to tell. */
export interface Verdict {
  readonly promise: string;
  readonly found: string;
  readonly isKept: boolean | undefined;
}

/** The stalls of one kind of outage, in the order of `SIGNALS`. */
export interface OutageReport {
  readonly name: string;
  readonly times: number;
  /** The longest one. */
  readonly seconds: number;
  readonly stalls: readonly Stall[];
}

const MOST_GROWTH_PERCENT = 5;
/** A process is warm after a fifth of so much. */
const WARM_AFTER_SECONDS = 10 * 60;
/** Until processes are on their own, and have Redis back, and a stalled attempt has run out, on a busy machine. */
const MOST_SECONDS_WITHOUT_CALLS = 15;
/** A call may end as late by what a busy machine's timer is late. */
const LATE_MS = 2_000;

/** Everything that was promised, and what came of it. */
export function verdictsOf(result: SoakResult): Verdict[] {
  const { events, inboxes, polling, refused, longestUplinkMs, calls, webhooks, breakdowns } = result;
  const { redis, postgres, transactional } = inboxes;
  const { startedAt, seconds, pulse } = result;
  const whole = { name: '', from: startedAt, until: startedAt, next: startedAt + seconds * 1_000 };
  const longestStall = pulse.stallOf('calls', [whole]).seconds;
  const each = (field: 'lost' | 'unexcused') => INBOXES.map((name) => inboxes[name][field]).join(', ');
  const none = (values: readonly number[]) => values.every((value) => value === 0);
  const excused =
    `Redis store: ${redis.cutByKill}, ${redis.forgotten} and ${redis.outlasted}; ` +
    `PostgreSQL store: ${postgres.cutByKill}`;
  const rejections = Object.entries(calls.rejected).map(([name, times]) => `${times} ${name}`);
  return [
    {
      promise: 'no event is lost (Redis store, PostgreSQL store, transactional inbox; polling)',
      found: `${each('lost')}; ${polling.lost}`,
      isKept: none([redis.lost, postgres.lost, transactional.lost, polling.lost]),
    },
    {
      promise: 'no event is handled twice without an excuse (the same)',
      found: `${each('unexcused')}; ${polling.repeats}`,
      isKept: none([redis.unexcused, postgres.unexcused, transactional.unexcused, polling.repeats]),
    },
    {
      promise:
        'excused is only what a kill cut off before its commit, what a FLUSHALL made Redis forget, and what was handled while Redis was away until its lease had ended',
      found: `${excused}; transactional inbox: ${transactional.repeats}`,
      isKept: transactional.repeats === 0,
    },
    {
      promise:
        'no request beyond the limit, but for those right after a FLUSHALL, which forgets who sent what, and for those in whose second others came later than `maxUplinkMs`',
      found: `${refused.unexcused}; ${refused.afterForgetting} after a FLUSHALL; ${refused.late} where others came late (${MAX_UPLINK_MS / 1_000} s allowed, longest ${(longestUplinkMs / 1_000).toFixed(1)} s)`,
      isKept: refused.unexcused === 0,
    },
    {
      promise: `every call ends within ${TOTAL_TIMEOUT_MS / 1_000} s with results or an error of this package`,
      found: `longest ${(calls.longestCallMs / 1_000).toFixed(1)} s; ${rejections.join(', ') || 'none rejected'}`,
      isKept:
        calls.longestCallMs < TOTAL_TIMEOUT_MS + LATE_MS &&
        !Object.keys(calls.rejected).some((name) => name.startsWith('not of')),
    },
    {
      promise: `calls go on whatever fails: never ${MOST_SECONDS_WITHOUT_CALLS} s without one that is answered`,
      found: `longest ${longestStall.toFixed(1)} s`,
      isKept: longestStall < MOST_SECONDS_WITHOUT_CALLS,
    },
    {
      promise: 'no polled tracker is given up',
      found: `${calls.givenUp}`,
      isKept: calls.givenUp === 0,
    },
    {
      promise: 'every webhook is accepted in the end, all trackers are polled again, no process breaks down',
      found: breakdowns.join('; ') || `${events} events, ${webhooks.sent} requests`,
      isKept: breakdowns.length === 0 && webhooks.notAccepted === 0,
    },
    ...heapVerdicts(result),
    ...endVerdicts(result),
  ];
}

function heapVerdicts({ heap, seconds }: SoakResult): Verdict[] {
  const [early, late] = [20, 100].map((percent) =>
    heap.find(({ percentOfTime }) => percentOfTime === percent),
  );
  return (['client', 'receiver'] as const).map((member) => {
    const promise = `heap of the ${member === 'client' ? 'client' : 'receiver that is never killed'}: at most ${MOST_GROWTH_PERCENT}% more at 100% of the time than at 20%`;
    const [before, after] = [early?.[member], late?.[member]];
    if (before === undefined || after === undefined) return { promise, found: 'not known', isKept: false };
    const growth = (wholeMiB(after) / wholeMiB(before) - 1) * 100;
    const told = (figure: (use: HeapUse) => number) =>
      `${figure(before).toFixed(1)} to ${figure(after).toFixed(1)} MiB`;
    return {
      promise,
      found: `${told(wholeMiB)}, ${growth.toFixed(1)}% (of it compiled by V8: ${told(({ codeMiB }) => codeMiB)})`,
      isKept: seconds < WARM_AFTER_SECONDS ? undefined : growth <= MOST_GROWTH_PERCENT,
    };
  });
}

function endVerdicts({ endings }: SoakResult): Verdict[] {
  const most = (field: 'timers' | 'sockets') => Math.max(...endings.map((ending) => ending[field]));
  const byThemselves = endings.filter(({ endedByItself }) => endedByItself).length;
  return [
    {
      promise: 'once closed: timers and sockets left (most of any process), processes that end by themselves',
      found: `${most('timers')}, ${most('sockets')}, ${byThemselves} of ${endings.length}`,
      isKept: most('timers') === 0 && most('sockets') === 0 && byThemselves === endings.length,
    },
  ];
}

/** The outages by kind. */
export function outageReports({ outages, pulse }: SoakResult): OutageReport[] {
  return [...new Set(outages.map(({ name }) => name))].map((name) => {
    const own = outages.filter((outage) => outage.name === name);
    return {
      name,
      times: own.length,
      seconds: Math.max(...own.map(({ from, until }) => (until - from) / 1_000)),
      stalls: SIGNALS.map((signal) => pulse.stallOf(signal, own)),
    };
  });
}

/** Both tables, for people. */
export function toMarkdown(verdicts: readonly Verdict[], reports: readonly OutageReport[]): string {
  const words = (isKept: boolean | undefined) => (isKept === undefined ? 'too short' : isKept ? 'yes' : 'NO');
  const cell = ({ seconds, afterSeconds }: Stall) => `${seconds.toFixed(1)} / ${afterSeconds.toFixed(1)}`;
  return [
    markdownTable(
      ['Promise', 'Measured', 'Kept'],
      verdicts.map(({ promise, found, isKept }) => [promise, found, words(isKept)]),
    ),
    'Longest stall in seconds, from the beginning of the outage on / once it was over:',
    markdownTable(
      ['Outage', 'Times', 'Longest', 'Calls', 'Redis store', 'PostgreSQL store', 'Transactional inbox'],
      reports.map(({ name, times, seconds, stalls }) => [
        name,
        `${times}`,
        `${seconds.toFixed(1)} s`,
        ...stalls.map(cell),
      ]),
    ),
  ].join('\n\n');
}
