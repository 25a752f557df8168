// The examples of docs/objects.md agree with the schemas, and its table of types with the exports.
import { parseWebhook } from 'tracking-client/webhooks';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import type * as z from 'zod';
import { readExports } from '../../scripts/readme/options.ts';
import { ENTRY_POINTS } from '../../scripts/support/entry-points.ts';
import { eventSchema } from '../../src/schemas/event.ts';
import { trackerSchema, webhookTrackerSchema } from '../../src/schemas/tracker.ts';
import {
  recipientSchema,
  shipmentDeliverySchema,
  shipmentSchema,
  statisticsSchema,
  trackingSchema,
} from '../../src/schemas/tracking.ts';
import { eventsMessageSchema } from '../../src/schemas/webhook.ts';
import { parseMarkdown, readDocument } from './support/documents.ts';

const { blocks, prose } = parseMarkdown(readDocument('docs/objects.md'));
/** The deprecated fields (docs/service.md 2.7), and the field that the package adds to a message. */
const LEFT_OUT = ['signedBy', 'datetime', 'utcOffset', 'hasNoTime', 'kind'];

type RecordSchema = z.ZodType & { readonly shape: Readonly<Record<string, z.ZodType>> };

const [tracker, tracking, webhook] = blocks.flatMap(({ language, code }): unknown[] => {
  if (language !== 'jsonc') return [];
  const { config, error } = ts.parseConfigFileTextToJson('example.jsonc', code);
  if (error !== undefined) throw new Error(`${JSON.stringify(error.messageText)} in ${code}`);
  return [config];
});

/** The value at a path of an example. */
function at(value: unknown, ...path: readonly string[]): unknown {
  return path.reduce(
    (object, name) => Object.entries(Object(object)).find(([key]) => key === name)?.[1],
    value,
  );
}

/** The fields that every parsed record has. */
function findCertain({ shape }: RecordSchema): string[] {
  return Object.entries(shape).flatMap(([name, schema]) => {
    const { success, data } = schema.safeParse(undefined);
    return success && data === undefined ? [] : name;
  });
}

describe('the examples', () => {
  const message = at(webhook, 'trackings', '0');

  it.each<[what: string, value: unknown, schema: RecordSchema]>([
    ['a tracker', tracker, trackerSchema],
    ['results', tracking, trackingSchema],
    ['a shipment', at(tracking, 'shipment'), shipmentSchema],
    ['a recipient', at(tracking, 'shipment', 'recipient'), recipientSchema],
    ['a delivery', at(tracking, 'shipment', 'delivery'), shipmentDeliverySchema],
    ['an event', at(tracking, 'events', '0'), eventSchema],
    [
      'the times of milestones',
      at(tracking, 'statistics', 'timestamps'),
      statisticsSchema.shape.timestamps.unwrap().unwrap(),
    ],
    ['a message of a webhook', message, eventsMessageSchema],
    ['the tracker of a webhook', at(message, 'tracker'), webhookTrackerSchema],
  ])('%s → has all fields of the schema, and no other field', (_what, value, schema) => {
    expect(schema.safeParse(value).error).toBeUndefined();
    const shown = Object.keys(schema.shape).filter((name) => !LEFT_OUT.includes(name));
    expect(Object.keys(Object(value)).sort()).toEqual(shown.sort());
  });

  it('the webhook → one message that breaks no rule', () => {
    const { messages, rejected, mismatched } = parseWebhook(webhook);
    expect([messages.map(({ kind }) => kind), rejected, mismatched]).toEqual([['events'], [], []]);
  });

  it('the fields that the page calls certain → those that the schemas require', () => {
    const [, certain = ''] = /\*\*Few fields are certain\*\*: (.+?)\. /s.exec(prose) ?? [];
    const named = [...certain.matchAll(/`(\w+)`/g)].map(([, name]) => name);
    const schemas = [trackerSchema, trackingSchema, eventsMessageSchema, eventSchema];
    expect(named).toEqual(schemas.flatMap(findCertain).filter((name) => name !== 'kind'));
  });
});

describe('the table of types', () => {
  const [, table = ''] = prose.split('## Exported types');

  it.each(['index', 'webhooks'] as const)(
    '%s → its types are exported, and all types of records are named',
    (entry) => {
      const heading = entry === 'index' ? 'tracking-client' : `tracking-client/${entry}`;
      const [, rows = ''] = table.split(`| **\`${heading}\`** | |\n`);
      const named = [...(rows.split('| **')[0] ?? '').matchAll(/^\| (.+?) \|/gm)].flatMap(([, cell = '']) =>
        [...cell.matchAll(/`(\w+)`/g)].map(([, name = '']) => name),
      );
      const exported = readExports(ENTRY_POINTS[entry]);
      expect(named.filter((name) => !exported.has(name))).toEqual([]);
      const records = [...exported].flatMap(([name, { declarations = [] }]) => {
        const isType = declarations.some(
          (each) => ts.isInterfaceDeclaration(each) || ts.isTypeAliasDeclaration(each),
        );
        return isType && declarations[0]?.getSourceFile().fileName.includes('/src/schemas/') ? name : [];
      });
      expect(records.length).toBeGreaterThan(4);
      expect(records.filter((name) => !named.includes(name))).toEqual([]);
    },
  );
});
