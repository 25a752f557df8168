import { type TrackerInput, trackerInputSchema } from 'tracking-client';
import { CommandError } from './terminal.ts';
import { plain } from './text.ts';

/** The names of columns that are sent; those of a recipient and the couriers need more than their text. */
export const FIELDS: readonly string[] = [
  ...Object.keys(trackerInputSchema.shape).filter((name) => !['recipient', 'settings'].includes(name)),
  'recipientEmail',
  'recipientName',
];

/** A file of failures has the columns of the imported file, and then these. */
export const FAILURE_COLUMNS: readonly string[] = ['line', 'status', 'reason'];

/** The longest list of names that a message shows. */
const MAX_NAMES_LENGTH = 200;

/** Makes `tracking_number`, `Tracking Number` and `trackingNumber` one name. */
function normalizeName(name: string): string {
  return name.toLowerCase().replace(/[\s_-]/g, '');
}

const FIELD_BY_NAME = new Map(FIELDS.map((name) => [normalizeName(name), name]));

/** The columns of the user, without those that an earlier import added. */
export function ownColumns(columns: readonly string[]): readonly string[] {
  const isOfFailures = columns.slice(-FAILURE_COLUMNS.length).join() === FAILURE_COLUMNS.join();
  return isOfFailures ? columns.slice(0, -FAILURE_COLUMNS.length) : columns;
}

/** Finds the field of each column, or undefined for one that is not sent. */
export function resolveFields(columns: readonly string[], fileName: string): readonly (string | undefined)[] {
  const fields = columns.map((name) => FIELD_BY_NAME.get(normalizeName(name)));
  const names = columns.map((name, index) => fields[index] ?? name);
  const twice = names.find((name, index) => name !== '' && names.indexOf(name) !== index);
  if (twice !== undefined)
    throw new CommandError(`Expected each column of ${fileName} once, got ${plain(twice)} twice`);
  if (!fields.includes('trackingNumber')) {
    const got = plain(columns.join(', ')).slice(0, MAX_NAMES_LENGTH);
    throw new CommandError(
      `Expected ${fileName} to have a column trackingNumber in its first line, got ${got}`,
    );
  }
  return fields;
}

/** Builds the creation request of a row; an empty cell is a field that is left out. */
export function buildInput(cells: readonly string[], fields: readonly (string | undefined)[]): TrackerInput {
  const named = fields.flatMap((field, index) => {
    const text = cells[index] ?? '';
    return field === undefined || text === '' ? [] : [[field, text] as const];
  });
  const {
    trackingNumber = '',
    courierCode,
    recipientEmail,
    recipientName,
    ...texts
  } = Object.fromEntries(named);
  const recipient = {
    ...(recipientEmail !== undefined && { email: recipientEmail }),
    ...(recipientName !== undefined && { name: recipientName }),
  };
  return {
    ...texts,
    trackingNumber,
    ...(courierCode !== undefined && { courierCode: courierCode.split(/[\s;|]+/) }),
    ...(Object.keys(recipient).length > 0 && { recipient }),
  };
}
