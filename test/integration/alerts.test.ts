import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { readAlertRules } from '../readme/support/alerts.ts';
import { describeWithPromtool } from './services.ts';

const run = promisify(execFile);

describeWithPromtool('the alerts of docs/alerts.yml', () => {
  let folder: string;
  let rules: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'alerts-'));
    rules = join(folder, 'rules.yaml');
    await writeFile(rules, readAlertRules());
  });
  afterAll(() => rm(folder, { recursive: true }));

  it('the rule file → valid for Prometheus', async () => {
    expect((await run('promtool', ['check', 'rules', rules])).stdout).toContain('SUCCESS: 3 rules found');
  });

  const refused = (reason: string, values: string) =>
    [`tracking_client_webhook_refused_total{tracking_client_webhook_reason="${reason}"}`, values] as const;
  const polls = (upToSeconds: string, values: string) =>
    [`tracking_client_poll_lag_bucket{le="${upToSeconds}"}`, values] as const;
  const waiting = (process: string, values: string) =>
    [
      `tracking_client_queue_length{tracking_client_endpoint="trackers.get", process="${process}"}`,
      values,
    ] as const;
  const REFUSED =
    '{alertname="TrackingWebhooksRefused", severity="critical", tracking_client_webhook_reason="unauthorized"}';
  const LATE = '{alertname="TrackingPollsLate", severity="warning"}';
  const WAITS =
    '{alertname="TrackingCallsWait", severity="warning", tracking_client_endpoint="trackers.get"}';

  // A series such as `0+1x60` has one value a minute: 0, 1, 2 … 60.
  it.each<[title: string, series: readonly (readonly [string, string])[], at: string, alerts: string[]]>([
    ['a wrong secret → the alert of refused webhooks', [refused('unauthorized', '0+1x60')], '30m', [REFUSED]],
    [
      'fifty refused webhooks before the first scrape → the alert of refused webhooks',
      [refused('unauthorized', '_x5 50x30')],
      '15m',
      [REFUSED],
    ],
    [
      'fifty refused webhooks more than an hour ago → no alert',
      [refused('unauthorized', '50x180')],
      '150m',
      [],
    ],
    ['two refused webhooks in an hour → no alert', [refused('unauthorized', '0x10 1x10 2x40')], '59m', []],
    ['webhooks refused at a restart → no alert', [refused('closing', '0+9x60')], '30m', []],
    ['a webhook URL that visitors open → no alert', [refused('method_not_allowed', '0+9x60')], '30m', []],
    [
      'polls that start 5 minutes late → the alert of late polls',
      [polls('60', '0x60'), polls('300', '0+9x60'), polls('+Inf', '0+9x60')],
      '30m',
      [LATE],
    ],
    [
      'polls that start late for four minutes → no alert',
      [polls('60', '0x60'), polls('300', '0+9x60'), polls('+Inf', '0+9x60')],
      '4m',
      [],
    ],
    [
      'one late poll in a hundred → no alert',
      [polls('60', '0+99x60'), polls('300', '0+100x60'), polls('+Inf', '0+100x60')],
      '30m',
      [],
    ],
    ['no polls → no alert', [polls('60', '0x60'), polls('300', '0x60'), polls('+Inf', '0x60')], '30m', []],
    [
      '60 waiting calls in each of two processes → the alert of waiting calls',
      [waiting('a', '60x30'), waiting('b', '60x30')],
      '15m',
      [WAITS],
    ],
    [
      '120 waiting calls for nine minutes → no alert',
      [waiting('a', '60x30'), waiting('b', '60x30')],
      '9m',
      [],
    ],
    ['100 waiting calls → no alert', [waiting('a', '100x30')], '15m', []],
  ])('%s', async (title, series, at, alerts) => {
    const file = join(folder, `${title.replaceAll(/\W+/g, '-')}.yaml`);
    const input = series.map(([name, values]) => ({ series: name, values }));
    const samples = alerts.map((labels) => ({
      labels: labels.replace('{', 'ALERTS{alertstate="firing", '),
      value: 1,
    }));
    const firing = { expr: 'ALERTS{alertstate="firing"}', eval_time: at, exp_samples: samples };
    const tests = [{ interval: '1m', input_series: input, promql_expr_test: [firing] }];
    await writeFile(file, stringify({ rule_files: ['rules.yaml'], tests }));
    await expect(run('promtool', ['test', 'rules', file])).resolves.toBeDefined();
  });
});
