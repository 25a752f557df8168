import { afterEach, expect, test } from 'vitest';
import { parse } from 'yaml';
import * as z from 'zod';
import { observeRateLimits, telemetryHooks, webhookMetrics } from '../../../src/opentelemetry/index.ts';
import { createWebhookHandler } from '../../../src/webhooks/index.ts';
import { pass, polledService, read, results } from '../../polling/polled-service.ts';
import { readAlertRules } from '../../readme/support/alerts.ts';
import { makeRecorder } from '../recorder.ts';

const ruleFile = z.object({
  groups: z.array(z.object({ rules: z.array(z.object({ alert: z.string(), expr: z.string() })) })),
});
const rules = ruleFile.parse(parse(readAlertRules())).groups.flatMap((group) => group.rules);

const SECRET = 'whsec-0123456789abcdef';
const recorder = makeRecorder();
afterEach(() => recorder.close());

/** Causes what the alerts are about: a late poll, a call that waits, and requests that are refused for three reasons. */
async function causeAlerts(): Promise<void> {
  const hooks = telemetryHooks(recorder.telemetry);
  const { client } = polledService(() => results([]), { hooks, rateLimit: {} });
  observeRateLimits(client, recorder.telemetry);
  read(client.trackers.pollMany(['a', 'b'], { initialDelayMs: 0, intervalMs: 60_000, maxPerSecond: 2 }));
  await pass(1000);
  // The service of this test knows no couriers, so the first call fails. The second call waits for the limit.
  for (const call of [client.couriers.list(), client.couriers.list()]) call.catch(() => {});

  const metrics = webhookMetrics(recorder.telemetry);
  const handler = createWebhookHandler({ secret: SECRET, onEvent() {}, metrics, onRefused() {} });
  const send = (authorization: string, method = 'POST') =>
    handler(new Request('http://a.test', { method, headers: { authorization } }));
  await send('Bearer wrong');
  await send('', 'GET');
  await handler.close();
  await send(`Bearer ${SECRET}`);
}

/** The names of metrics and labels, and the values of labels, in the text that Prometheus reads. */
function readWords(text: string): ReadonlySet<string | undefined> {
  const patterns = [/^(\w+)[ {]/gm, /[{,](\w+)=/g, /="(.*?)"/g];
  return new Set(patterns.flatMap((pattern) => [...text.matchAll(pattern)].map(([, word]) => word)));
}

test('the alerts of the page → use only metrics, labels and values that the exporter for Prometheus writes', async () => {
  await causeAlerts();
  const text = await recorder.prometheusText();
  expect(text).toMatch(/^tracking_client_poll_lag_sum\{.*\} 0\.5$/m);
  expect(text).toMatch(/^tracking_client_queue_length\{tracking_client_endpoint="couriers.list",.*\} 1$/m);
  const words = readWords(text);
  expect(rules).toHaveLength(3);
  for (const { alert, expr } of rules) {
    const names = expr.match(/\btracking_client_\w+/g) ?? [];
    const values = [...expr.matchAll(/"(.*?)"/g)].flatMap(([, list = '']) => list.split('|'));
    expect(names, alert).not.toEqual([]);
    expect([...names, ...values].filter((word) => !words.has(word))).toEqual([]);
  }
});
