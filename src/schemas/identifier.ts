import * as z from 'zod';
import { expected } from '../common/validation.ts';
import { text } from './record.ts';

const MAX_DECODINGS = 8;

/** Decodes until nothing changes, because a lax server may read `%252e` as a dot. */
function decode(value: string, rounds = MAX_DECODINGS): string {
  const decoded = value.replace(/%([0-9a-f]{2})/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  return decoded === value || rounds === 1 ? decoded : decode(decoded, rounds - 1);
}

/** Tells whether a path holds `.` or `..`, plain or percent-encoded. */
export function hasDotSegment(path: string): boolean {
  return decode(path)
    .split(/[/\\]/)
    .some((segment) => segment === '.' || segment === '..');
}

/** A tracker id or client tracker id, which becomes one segment of a path. */
export const trackerIdentifier = z
  .string(expected('to be a string'))
  .refine((id) => id.trim() !== '', expected('to be a non-empty id'))
  .refine(
    (id) => !/^\.\.?$/.test(decode(id).trim()),
    expected('to be an id', () => 'a dot segment'),
  )
  // A URL cannot carry half of a surrogate pair.
  .refine((id) => !/\p{Surrogate}/u.test(id), expected('to be well-formed Unicode'));

/** Length and character set as in service.md, section 2.1. */
const trackingNumberText = text(5, 50).regex(
  /^[A-Za-z0-9\-_/.]*$/,
  expected('to hold only A-Z, a-z, 0-9, "-", "_", "/" and "."'),
);

/**
 * Tells whether a number is one ascending run of digits such as `12345` or `1234567890`, which the service rejects. A run
 * that goes on after that 0 may be a real number.
 */
export function isAscendingDigitRun(value: string): boolean {
  return '01234567890'.includes(value);
}

/** A tracking number that may be submitted: right length and characters, and no run of digits. */
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
