import ts from 'typescript';
import { expect, it } from 'vitest';
import { optionTable } from '../../scripts/readme/options.ts';
import { DOCUMENTS, PARTS, writtenAnew } from '../../scripts/readme.ts';
import { ALL_DOCUMENTS, readDocument } from './support/documents.ts';

it.each(DOCUMENTS)('%s → says what the sources and the results say; else run `npm run readme`', (path) => {
  const text = readDocument(path);
  expect(text).toBe(writtenAnew(text));
});

it('the guides and the recipes → stay short enough to be read', () => {
  const pages = ALL_DOCUMENTS.filter((path) => path.startsWith('docs/') && path !== 'docs/service.md');
  const bytes = pages.reduce((sum, path) => sum + Buffer.byteLength(readDocument(path)), 0);
  expect(bytes).toBeLessThanOrEqual(97_500);
});

it('options.md with another default → written as it was', () => {
  const text = readDocument('docs/options.md');
  const stale = text.replace('| 4; 20 for', '| 5; 20 for');
  expect(stale).not.toBe(text);
  expect(writtenAnew(stale)).toBe(text);
});

it.each(Object.keys(PARTS))('the documents → hold the part "%s" once', (name) => {
  const text = DOCUMENTS.map(readDocument).join('\n');
  for (const mark of [`<!-- ${name}: written by the program -->`, `<!-- end of ${name} -->`])
    expect(text.split(mark)).toHaveLength(2);
});

it('a document with a part that is gone → named', () => {
  const text = '<!-- figures of gone: written by the program -->\n<!-- end of figures of gone -->';
  expect(() => writtenAnew(text)).toThrow('got "figures of gone"');
});

it('an option whose comment tells no default → named', () => {
  const text = 'interface AnyOptions { /** How long, in milliseconds. */ readonly lengthMs?: number }';
  const source = ts.createSourceFile('a.ts', text, ts.ScriptTarget.Latest, true);
  expect(() => optionTable(source.statements.filter(ts.isInterfaceDeclaration))).toThrow(
    'the comment of `AnyOptions.lengthMs` to state the default',
  );
});
