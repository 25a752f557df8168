import { max, median } from '../../bench/statistics.ts';
import { type FleetFigure, fleetFigure } from './fleet-figures.ts';
import { found, named, type Results } from './results.ts';
import { killedFleet } from './store-figures.ts';

/** Why things are as they are, with the figures that decided it. */
export function designNotes(results: Results): string {
  const notes = [tokens, reserve, remaining, budget, fleet, takeover, inputs, polling, cost, body];
  return notes.map((note) => `- ${note(results).replace(/\s+/g, ' ')}`).join('\n');
}

function limiterFigure({ limiter }: Results, name: string, contender: string): string {
  const { measurements } = named(limiter.cases, name);
  const { median: figure } = found(
    measurements.find((measurement) => measurement.contender === contender),
    contender,
  );
  return `${figure.refused} answers of 429 at ${percent(figure.sharePercent)}`;
}

function percent(share: number): string {
  return `${share.toFixed(0)}% of the allowance`;
}

function tokens(results: Results): string {
  const uneven = (contender: string) => limiterFigure(results, '10/s sliding, jitter 80 ms', contender);
  return `**A token comes back one window after the answer.** The service counts a request somewhere between its sending
  and its answer; nobody outside knows where. Counting from the answer is right wherever that is. Sliding window, 0-80 ms
  jitter: ${uneven('tracking-client')}. A classic token bucket: ${uneven('classic token bucket')}. A slow answer holds its
  token, 500 ms at most; that is the price: ${limiterFigure(results, '10/s sliding, handler 500 ms', 'tracking-client')} when every
  answer takes that long.`;
}

function reserve({ limiter }: Results): string {
  const runs = (tokensLeft: number) => limiter.priorityRuns.filter((run) => run.reserve === tokensLeft);
  const waits = (tokensLeft: number) => runs(tokensLeft).map(({ waitedMs }) => waitedMs);
  const pace = (tokensLeft: number) =>
    median(runs(tokensLeft).map((run) => run.backgroundPercent)).toFixed(0);
  return `**Background calls leave one token free.** A priority alone still waits for the next token: ${median(waits(0)).toFixed(0)} ms
  in the median and ${max(waits(0)).toFixed(0)} ms at worst, among 300 background calls. With one token in reserve it is
  ${max(waits(1)).toFixed(0)} ms. Background work then runs at ${pace(1)}% of the allowance instead of ${pace(0)}%.`;
}

function remaining(): string {
  return `**\`Remaining: 0\` is not obeyed.** A window that is used exactly as allowed ends with it, so waiting for the next
  one would punish keeping the limit. What is obeyed: a 429, \`Retry-After\`, and a limit that the headers announce.`;
}

function budget(results: Results): string {
  const { queueRounds } = results.limiter;
  const timers = (name: string) =>
    median(queueRounds.flat().flatMap((cost) => (cost.name === name ? [cost.timers] : [])));
  return `**\`p-throttle\` keeps a budget, not the limit.** \`pollMany({ maxPerSecond })\` uses it to spread polls. It counts when
  it sends: in strict mode ${limiterFigure(results, '10/s sliding, jitter 80 ms', 'p-throttle strict')}. With 10,000
  calls waiting it holds ${timers('p-throttle strict').toLocaleString('en-US')} timers, the limiter of this client ${timers('TokenBucketLimiter')}.`;
}

function fleet(results: Results): string {
  const words = ({ refused, sharePercent, commandsPerCall }: FleetFigure) =>
    `${refused} answers of 429 at ${percent(sharePercent)} with ${commandsPerCall.toFixed(1)} Redis commands per call`;
  const figure = (contender: Parameters<typeof fleetFigure>[2]) =>
    words(fleetFigure(results, '4 processes, sliding', contender));
  return `**Processes share tokens, not counters.** \`RedisLimiter\` leases tokens on the clock of Redis, one exchange for all
  calls that wait. Four processes, sliding window: ${figure('RedisLimiter')}. A queue over counters:
  ${figure('rate-limiter-flexible')}.`;
}

function takeover(results: Results): string {
  const { deliveries, events, kills, lost, repeats } = killedFleet(results, 'redis');
  const transactional = killedFleet(results, 'postgres transactional');
  const count = (value: number) => value.toLocaleString('en-US');
  return `**2xx only once the work is taken over.** The sender repeats for about six days whatever is not answered with 2xx, so
  there is a queue already, and it survives your crash. ${count(deliveries)} deliveries of ${count(events)} events, ${kills} receivers killed in
  between: ${lost} events lost and ${repeats} handled twice with \`RedisDedupeStore\`, ${transactional.lost} and
  ${transactional.repeats} with \`transactionalInbox\`.`;
}

function inputs({ webhooks, scale }: Results): string {
  const ratios = webhooks.parse.map(({ ratio }) => ratio);
  const { values } = named(scale.figures, 'createMany of 1,000,000 inputs, answers after 10 ms');
  const over = found(values['overPercent'], 'overPercent').toFixed(1);
  return `**Everything is checked, and nothing is collected.** \`parseWebhook\` with all its checks takes ${Math.min(...ratios).toFixed(2)} to
  ${Math.max(...ratios).toFixed(2)} times as long as \`JSON.parse\` alone. \`createMany\` reads at most ${values['mostAhead']} inputs ahead: a million of them
  took ${over}% longer than the limit allows at best.`;
}

function polling({ scale }: Results): string {
  const day = named(
    scale.figures,
    'pollMany of 10,000 trackers, interval 20 min, 10 requests/s, 24 h',
  ).values;
  const idle = named(scale.figures, 'heap per idle tracker, 10,000 trackers with 12 events each').values;
  const deviation = found(day['deviationPercent'], 'deviationPercent').toFixed(2);
  const bytes = found(idle['bytesPerTracker'], 'bytesPerTracker').toFixed(0);
  return `**One timer polls them all.** 10,000 trackers every 20 minutes for a day, in virtual time: every interval within
  ${deviation}%, ${day['refused']} answers of 429, ${day['mostTimers']} timer, ${bytes} bytes per idle tracker.`;
}

function cost({ overhead }: Results): string {
  const ratios = (contender: string) =>
    overhead.cpu.map(({ events, costs }) => {
      const { ratio } = found(
        costs.find((one) => one.contender === contender),
        contender,
      );
      return `${ratio.toFixed(2)} times with ${events} events`;
    });
  return `**A call costs CPU time.** Against bare \`fetch\` and \`JSON.parse\`: ${ratios('tracking-client').join(', ')}; \`ky\`
  alone, which sends each request here, ${ratios('ky').join(', ')}. A schema that is used often is compiled, and \`p-retry\`
  is asked only after a failure. What else was tried: [bench/README.md](bench/README.md#what-it-costs).`;
}

function body({ overhead }: Results): string {
  const costOf = (contender: string) =>
    found(
      overhead.imports.find((one) => one.contender === contender),
      contender,
    );
  const ratio = (figure: 'processMs' | 'importMs') =>
    (costOf('tracking-client (ESM)')[figure] / costOf('zod (ESM)')[figure]).toFixed(2);
  return `**One body, two fronts.** The code is shipped once, minified, with the names of its functions and with source maps to the files and lines of the
  repository; \`import\` and \`require\`
  have a front each, which hands it \`zod\` of its own kind; in a process that uses both, the first one decides. So a process that uses both has one class of each error, and the
  package unpacks to ${(overhead.unpackedBytes / 1000).toFixed(0)} kB. \`ky\` is loaded by the first call: a process that imports this package takes
  ${ratio('processMs')} times as long as one that imports \`zod\`, the import alone ${ratio('importMs')} times.`;
}
