import * as main from 'tracking-client';
import { TrackingClient } from 'tracking-client';
import { createFakeTrackingService } from 'tracking-client/testing';
import { createWebhookHandler, MemoryDedupeStore, WebhookInbox } from 'tracking-client/webhooks';
import { describe, expect, it } from 'vitest';
import { ENDPOINT_NAMES, endpoints } from '../../src/endpoints.ts';
import { readDocument } from './support/documents.ts';

const readme = readDocument('README.md');
// Written by npm itself.
const { dependencies, exports } = JSON.parse(readDocument('package.json')) as {
  dependencies: Record<string, string>;
  exports: Record<string, unknown>;
};

const JSON_HEADERS = { authorization: 'Bearer whsec', 'content-type': 'application/json' };
const FORM_HEADERS = { ...JSON_HEADERS, 'content-type': 'application/x-www-form-urlencoded' };

/** The statuses of the responses to everything that the webhooks page has a row for. */
async function provokedStatuses(): Promise<Set<number>> {
  const fake = createFakeTrackingService();
  const client = new TrackingClient({ baseUrl: fake.baseUrl, apiKey: fake.apiKey, fetch: fake.fetch });
  await client.trackers.create({ trackingNumber: 'RR123456785CN' });
  fake.shipment('RR123456785CN').addEvent({ statusMilestone: 'in_transit' });
  const [event] = fake.webhooks.take().map(({ item }) => item);
  const handler = () => {
    throw new Error('a handler failed');
  };
  const inbox = new WebhookInbox({ store: new MemoryDedupeStore(), onError: () => {} });
  const webhooks = createWebhookHandler({ secret: 'whsec', inbox, onEvent: handler, maxBodyBytes: 10_000 });
  const send = async (init: RequestInit) => {
    const request = new Request('https://app.test/webhooks', {
      method: 'POST',
      headers: JSON_HEADERS,
      ...init,
    });
    return (await webhooks(request)).status;
  };
  const statuses = [
    await send({ method: 'HEAD' }),
    await send({ body: 'not JSON' }),
    await send({ body: '{}', headers: {} }),
    await send({ method: 'PUT' }),
    await send({ body: ' '.repeat(10_001) }),
    await send({ body: 'a=1', headers: FORM_HEADERS }),
    await send({ body: '{"trackings":[{}]}' }),
    await send({ body: JSON.stringify({ trackings: [event] }) }),
  ];
  await webhooks.close();
  return new Set([...statuses, await send({ body: '{}' })]);
}

/** The cells of one column of the tables in a section, heads and lines left out. */
function column(text: string, heading: string, index: number): string[] {
  const [, section = ''] = text.split(`\n## ${heading}\n`);
  const rows = (section.split('\n## ')[0] ?? '').split('\n').filter((line) => line.startsWith('| '));
  return rows.slice(2).map((row) => row.slice(2, -2).split(' | ')[index] ?? '');
}

describe('what users read about', () => {
  it('errors → every class that callers can meet', () => {
    const told = column(readDocument('docs/troubleshooting.md'), 'Error classes', 0).join();
    const names = Object.keys(main).filter((name) => /^[A-Z].*Error$/.test(name));
    const parents = ['TrackingError', 'ApiError'];
    expect(names.filter((name) => !parents.includes(name) && !told.includes(`\`${name}\``))).toEqual([]);
  });

  it('retries → every retry class', () => {
    const told = column(readDocument('docs/limits-and-retries.md'), 'What is repeated', 0);
    const classes = new Set(ENDPOINT_NAMES.map((name) => `\`${endpoints[name].retryClass}\``));
    expect(new Set(told)).toEqual(classes);
  });

  it('responses to webhooks → every status', async () => {
    const told = column(readDocument('docs/webhooks.md'), 'Responses', 1).map((cell) =>
      Number(cell.slice(0, 3)),
    );
    expect(new Set(told)).toEqual(await provokedStatuses());
  });

  it('imports → every entry point of the package', () => {
    const paths = Object.keys(exports).filter((path) => path !== './package.json');
    const names = paths.map((path) => `\`${path.replace('.', 'tracking-client')}\``);
    expect(column(readme, 'Install', 0)).toEqual(names);
  });

  it('packages it brings along → all of them', () => {
    const [, section = ''] = readme.split('\n## Install\n');
    const [install = ''] = section.split('\n## ');
    for (const name of Object.keys(dependencies)) expect(install).toContain(`\`${name}\``);
  });
});
