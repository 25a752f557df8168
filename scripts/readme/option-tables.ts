import { type ExportedType, exportedInterfaces } from './exported-types.ts';
import { optionsTable } from './options-table.ts';
import { describeOptions } from './options-type.ts';
import type { Part } from './part.ts';

/** Interfaces whose name does not tell that callers fill them in. */
const MORE_OPTIONS = ['Hooks', 'RawRequest', 'WebhookCallbacks', 'FakePlans'];

/** What only those who write a limiter of their own meet. */
const NOT_SHOWN = ['AcquireOptions'];

/** Every options type that users can import, so that a new one needs its place in the README. */
export function optionsTypes(): ExportedType[] {
  return exportedInterfaces().filter(
    ({ name, path }) =>
      // The fake has a `RawRequest` of its own, which callers receive rather than write.
      (name.endsWith('Options') || MORE_OPTIONS.includes(name)) &&
      !NOT_SHOWN.includes(name) &&
      !path.startsWith('src/testing/service/'),
  );
}

/** One part of the README for each options type. */
export function optionTables(): Part[] {
  return optionsTypes().map((type) => ({
    name: `options of ${type.name}`,
    content: () => optionsTable(describeOptions(type)),
  }));
}
