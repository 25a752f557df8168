import fc from 'fast-check';
import { API_KEY } from '../support/make-client.ts';

/** Builds JSON that is nested deeper than the stack. */
function nest(depth: number): string {
  return `${'[{"a":'.repeat(depth)}1${'}]'.repeat(depth)}`;
}

/** Texts in place of a JSON value; some are not valid JSON. */
const VALUES = [
  ...['null', 'true', '[]', '{}', '""', '-0', '0.1', '1e400', '-1e400'],
  ...['9'.repeat(400), '9007199254740993', '01', 'NaN', 'undefined', "'single'"],
  '"\\ud800"',
  '"\\udc00\\ud800"',
  '"\\u0000"',
  '"\u2028\u202e"',
  '"ÅÅ"',
  '"9999-12-31T23:59:60Z"',
  '"-000001-01-01"',
  '[null,[],{},""]',
  '{"__proto__":{"polluted":true}}',
  '{"constructor":{"prototype":{"polluted":true}}}',
  '{"then":1,"toJSON":1,"length":-1,"code":"tracker_conflict"}',
  JSON.stringify(API_KEY),
  `"${'x'.repeat(10_000)}"`,
  nest(1_000),
  nest(50_000),
];

/** Members that are inserted at the start of an object, where a later one may have the same name. */
const MEMBERS = [
  '"__proto__":{"polluted":true}',
  '"constructor":{"prototype":{"polluted":true}}',
  '"toString":1',
  '"hasOwnProperty":null',
  '"then":{}',
  '"toJSON":1',
  '"kind":"proofOfDelivery"',
  '"data":{"tracker":null}',
  '"events":null',
  '"trackings":{}',
  '"trackerId":"again"',
  '"eventId":"again"',
  '"errors":[{"code":"quota_limit_reached"}]',
  `${JSON.stringify(API_KEY)}:1`,
  '"":""',
];

type Change =
  | { readonly kind: 'value' | 'member'; readonly at: number; readonly text: string }
  | { readonly kind: 'cut'; readonly at: number }
  | { readonly kind: 'bytes'; readonly at: number; readonly bytes: Uint8Array };

const at = fc.nat(10_000);
const change: fc.Arbitrary<Change> = fc.oneof(
  ...[
    fc.record({ kind: fc.constant('value'), at, text: fc.oneof(fc.constantFrom(...VALUES), fc.json()) }),
    fc.record({ kind: fc.constant('member'), at, text: fc.constantFrom(...MEMBERS) }),
  ].map((arbitrary) => ({ weight: 6, arbitrary })),
  fc.record({ kind: fc.constant('cut'), at }),
  fc.record({ kind: fc.constant('bytes'), at, bytes: fc.uint8Array({ maxLength: 4 }) }),
);

/** Matches the values of a JSON text. */
const VALUE_TOKEN =
  /(?<=[:,[])\s*(?:"(?:[^"\\]|\\.)*"(?!\s*:)|-?\d[\d.eE+-]*|true|false|null|\{[^{}]*\}|\[[^[\]]*\])/g;

function splice(text: string, from: number, to: number, insert: string): string {
  return text.slice(0, from) + insert + text.slice(to);
}

function applyChange(body: Buffer, change: Change): Buffer {
  if (change.kind === 'cut') return body.subarray(0, change.at % (body.length + 1));
  if (change.kind === 'bytes') {
    const from = change.at % (body.length + 1);
    return Buffer.concat([body.subarray(0, from), change.bytes, body.subarray(from + change.bytes.length)]);
  }
  // Changing decoded text would repair invalid UTF-8.
  const text = body.toString('latin1');
  const insert = Buffer.from(change.text).toString('latin1');
  // Bounded, because a deeply nested body has too many braces.
  const places = [...text.slice(0, 20_000).matchAll(change.kind === 'value' ? VALUE_TOKEN : /\{/g)];
  const place = places[change.at % places.length];
  if (place === undefined) return Buffer.from(insert, 'latin1');
  const from = place.index;
  if (change.kind === 'value')
    return Buffer.from(splice(text, from, from + place[0].length, insert), 'latin1');
  const comma = /^\{\s*\}/.test(text.slice(from)) ? '' : ',';
  return Buffer.from(splice(text, from + 1, from + 1, insert + comma), 'latin1');
}

/** Generates changed bodies of valid values and of the texts, and any bytes. */
export function brokenBody(good: fc.Arbitrary<unknown>, texts: readonly string[]): fc.Arbitrary<Buffer> {
  const base = fc.oneof(
    { weight: 5, arbitrary: good.map((value) => JSON.stringify(value)) },
    { weight: 1, arbitrary: fc.constantFrom(...texts) },
  );
  const changes = fc.array(change, { maxLength: 4 });
  const changed = fc
    .tuple(base, changes)
    .map(([text, all]) => all.reduce<Buffer>(applyChange, Buffer.from(text)));
  return fc.oneof(
    { weight: 20, arbitrary: changed },
    { weight: 2, arbitrary: fc.json().map((text) => Buffer.from(text)) },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)) },
  );
}

type Json = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Reads a body; undefined when it is no JSON. */
export function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(body));
  } catch {
    return undefined;
  }
}
