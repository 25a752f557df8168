import { z } from 'zod';
import { expected } from '../common/validation.ts';
import { text } from './record.ts';

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
  .refine((value) => value.trim() !== '', expected('to be a non-empty id'))
  .refine(
    (value) => !isDotSegment(fullyDecoded(value).trim()),
    expected('to be an id', () => 'a dot segment'),
  )
  .refine(isWellFormed, expected('to be well-formed Unicode'));

/** Length and character set of a tracking number (service.md 2.1). */
const trackingNumberText = text(5, 50).regex(
  /^[A-Za-z0-9\-_/.]*$/,
  expected('to hold only A-Z, a-z, 0-9, "-", "_", "/" and "."'),
);

/**
 * True for one plain ascending run of digits such as `12345` or `1234567890`, which the service rejects as a dummy. A run
 * that goes on after that 0 may be a real number: the service knows. Only asked of what is long enough.
 */
export function isAscendingDigitRun(value: string): boolean {
  return '01234567890'.includes(value);
}

/** A tracking number that may be submitted: right length and characters, and not a dummy digit run. */
export const trackingNumber = trackingNumberText.refine(
  (value) => !isAscendingDigitRun(value),
  expected('to be a real tracking number', () => 'a plain ascending run of digits'),
);

/** A tracking number in a path; it may hold `/`, but no `.` or `..` between slashes. */
export const trackingNumberIdentifier = trackingNumberText.refine(
  (value) => !hasDotSegment(value),
  expected('to be a tracking number', () => 'a dot segment'),
);

/** The schema of `SearchBy`. */
export const searchBySchema = z.enum(
  ['trackerId', 'clientTrackerId'],
  expected('to be "trackerId" or "clientTrackerId"'),
);
/** How a tracker is addressed: by the service's id (default) or by your own. */
export type SearchBy = z.output<typeof searchBySchema>;
