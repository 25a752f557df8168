import { z } from 'zod';
import { expected } from '../common/validation.ts';
import { trackingNumberText } from './input-rules.ts';

const MAX_DECODINGS = 8;

/** Undoes percent-encoding until nothing changes, so `%252e` is seen as the dot a lax server would make of it. */
function fullyDecoded(value: string): string {
  let current = value;
  for (let round = 0; round < MAX_DECODINGS; round += 1) {
    const next = current.replace(/%([0-9a-f]{2})/gi, (_, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    );
    if (next === current) break;
    current = next;
  }
  return current;
}

function isDotSegment(value: string): boolean {
  return value === '.' || value === '..';
}

/** True when a path holds `.` or `..`, plain or percent-encoded, as a server may read it. */
export function hasDotSegment(value: string): boolean {
  return fullyDecoded(value).split(/[/\\]/).some(isDotSegment);
}

/** False for a string with half a surrogate pair, which no URL can carry. */
function isWellFormed(value: string): boolean {
  return !/[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/.test(value);
}

/** A tracker id or client tracker id as one path segment: never empty, a dot segment, or an encoding of one. */
export const trackerIdentifier = z
  .string(expected('to be a string'))
  .refine((value) => value.trim() !== '', { ...expected('to be a non-empty id'), abort: true })
  .refine(
    (value) => !isDotSegment(fullyDecoded(value).trim()),
    expected('to be an id', () => 'a dot segment'),
  )
  .refine(isWellFormed, expected('to be well-formed Unicode'));

/** A tracking number in a path; it may hold `/`, but no `.` or `..` between slashes. */
export const trackingNumberIdentifier = trackingNumberText.refine(
  (value) => !hasDotSegment(value),
  expected('to be a tracking number', () => 'a dot segment'),
);

/**
 * The schema of `SearchBy`.
 *
 * @specification service.md 2.4
 */
export const searchBySchema = z.enum(
  ['trackerId', 'clientTrackerId'],
  expected('to be "trackerId" or "clientTrackerId"'),
);
/**
 * How a tracker is addressed: by the service's id (default) or by your own.
 *
 * @specification service.md 2.4
 */
export type SearchBy = z.output<typeof searchBySchema>;
