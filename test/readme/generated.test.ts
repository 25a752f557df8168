import { expect, it } from 'vitest';
import { PICTURES } from '../../scripts/readme/figures.ts';
import { DOCUMENTS, PARTS, writtenAnew } from '../../scripts/readme.ts';
import { readDocument } from './support/documents.ts';

it.each(DOCUMENTS)('%s → agrees with the sources and the results; otherwise run `npm run readme`', (path) => {
  const text = readDocument(path);
  expect(text).toBe(writtenAnew(text));
});

it.each(Object.entries(PICTURES))(
  '%s → agrees with the results; otherwise run `npm run readme`',
  (path, draw) => {
    expect(readDocument(path)).toBe(draw());
  },
);

it('options.md with a changed default → regenerated as before', () => {
  const text = readDocument('docs/options.md');
  const stale = text.replace('| 4; 20 for', '| 5; 20 for');
  expect(stale).not.toBe(text);
  expect(writtenAnew(stale)).toBe(text);
});

it.each(Object.keys(PARTS))('the documents → contain the generated part "%s" once', (name) => {
  const text = DOCUMENTS.map(readDocument).join('\n');
  for (const mark of [`<!-- ${name}: written by the program -->`, `<!-- end of ${name} -->`])
    expect(text.split(mark)).toHaveLength(2);
});

it('a document without its generated part → an error that names the part', () => {
  const text = '<!-- figures of gone: written by the program -->\n<!-- end of figures of gone -->';
  expect(() => writtenAnew(text)).toThrow('got "figures of gone"');
});
