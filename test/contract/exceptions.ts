import * as samples from './support/samples.ts';

interface Exception {
  readonly what: string;
  /** The file of `schemas` that takes the example all the same. */
  readonly schema: string;
  /** What the published schema declares, and the example breaks. */
  readonly declared: object;
  readonly example: unknown;
  readonly why: string;
}

function inside(path: readonly string[], schema: object): object {
  return path.reduceRight<object>((inner, key) => ({ type: 'object', properties: { [key]: inner } }), schema);
}

/** The one list of the places where the published schema contradicts its own examples, and what this suite believes. */
export const EXCEPTIONS: readonly Exception[] = [
  {
    what: 'totalResent: declared a string, shown as a number',
    schema: 'resend-envelope',
    declared: inside(['data', 'summary', 'totalResent'], { type: 'string' }),
    example: { data: { summary: { totalResent: 12 } } },
    why: 'A count is a number, and every example shows one. The client takes both.',
  },
  {
    what: 'isTracked of a webhook: required on a tracker, left out of every webhook sample',
    schema: 'webhook-tracker',
    declared: { type: 'object', required: ['isTracked'] },
    example: samples.WEBHOOK_TRACKER,
    why: 'A push is sent because the tracker is tracked; the contract says that webhooks have no isTracked.',
  },
  {
    what: 'eventId: declared a UUID, shown as none',
    schema: 'event',
    declared: inside(['eventId'], {
      type: 'string',
      pattern: '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$',
    }),
    example: samples.EVENT,
    why: 'Samples hold letters that no UUID has. An id is an opaque string.',
  },
  {
    what: 'an error item of bulk: tracker required, left out of the sample',
    schema: 'bulk-item',
    declared: { type: 'object', required: ['tracker'] },
    example: samples.FAILED_ITEM_WITHOUT_TRACKER,
    why: 'Nothing was created, so there is nothing to show: null and absent mean the same.',
  },
  {
    what: 'responseStatusCode of the history: a status is a number elsewhere, here it is text',
    schema: 'webhook-history',
    declared: inside(['webhooks'], {
      type: 'array',
      items: inside(['responseStatusCode'], { type: ['integer', 'null'] }),
    }),
    example: samples.HISTORY,
    why: 'The contract shows "200". Schema and client follow it.',
  },
  {
    what: 'restrictTrackingToCourierCode: documented as courier codes, observed as a boolean',
    schema: 'restriction',
    declared: { type: 'boolean' },
    example: ['us-post'],
    why: 'The documentation rules: the request takes a boolean, one code, or up to three (docs/service.md 3.8).',
  },
];

/** Where the contract names two statuses for one outcome. The client takes both; the fake uses one of them. */
export const STATUSES_NAMED_TWICE = {
  bulkSuccess: { statuses: [201, 200], why: '201 in the schema, 200 in the documentation.' },
  trackAgain: { statuses: [200, 201], why: 'The contract says "200 or 201" and not when.' },
  numberWithoutResults: {
    statuses: [200, 404],
    why: 'The envelope table says 0..n trackings, "Stops" says 404 on the results endpoints.',
  },
} as const;
