import { code, markdownTable } from '../support/markdown-table.ts';
import type { DescribedOption, DescribedOptions, InheritedOptions } from './options-type.ts';

/** What the README says of one options type: what it is for, its options, and where more come from. */
export function optionsTable({ comment, options, inherited }: DescribedOptions): string {
  const rows = options.map((option) => [code(option.name), code(option.type), meaningOf(option)]);
  const parts = [
    comment,
    markdownTable(['Option', 'Type', 'What it does'], rows),
    ...inherited.map(alsoTakes),
  ];
  return parts.filter((part) => part !== '').join('\n\n');
}

function meaningOf({ isRequired, comment, example }: DescribedOption): string {
  const meaning = isRequired ? `**Required.** ${comment}` : comment;
  return example === undefined ? meaning : `${meaning} Example: ${code(example)}`;
}

function alsoTakes({ from, without }: InheritedOptions): string {
  const exception = without.length === 0 ? '' : `, except ${without.map(code).join(', ')}`;
  return `Also every option of ${code(from)}${exception}.`;
}
