import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { optionTable } from '../../scripts/readme/options.ts';
import { DOCUMENTS, PARTS, writtenAnew } from '../../scripts/readme.ts';
import { readDocument } from './support/documents.ts';

describe('the generated parts of', () => {
  it.each(DOCUMENTS)('%s → say what the sources and the results say; else run `npm run readme`', (path) => {
    const text = readDocument(path);
    expect(text).toBe(writtenAnew(text));
  });

  it.each([
    [
      'an endpoint that is allowed more often',
      'docs/options.md',
      '/trackers/bulk` | 3 |',
      '/trackers/bulk` | 30 |',
    ],
    ['an option with another default', 'docs/options.md', '| 4; 20 for', '| 5; 20 for'],
    [
      'a better figure',
      'docs/benchmarks.md',
      '| 10/s sliding, handler 500 ms | 0 /',
      '| 10/s sliding, handler 500 ms | 9 /',
    ],
  ])('a document with %s → written as it was', (_, path, words, otherWords) => {
    const text = readDocument(path);
    const stale = text.replace(words, otherWords);
    expect(stale).not.toBe(text);
    expect(writtenAnew(stale)).toBe(text);
  });

  it.each(Object.keys(PARTS))('the documents → hold the part "%s" once', (name) => {
    const marks = DOCUMENTS.flatMap((path) =>
      readDocument(path).split(`<!-- ${name}: written by the program -->`).slice(1),
    );
    expect(marks).toHaveLength(1);
    expect(marks[0]).toContain(`<!-- end of ${name} -->`);
  });

  it('a document with a part that is gone → named', () => {
    const text = '<!-- figures of gone: written by the program -->\n<!-- end of figures of gone -->';
    expect(() => writtenAnew(text)).toThrow('got "figures of gone"');
  });
});

describe('the options', () => {
  it('every type that users can import and fill in → shown once', () => {
    const headings = [...readDocument('docs/options.md').matchAll(/^#### `(.+)`$/gm)].map(([, name]) => name);
    expect(headings).toEqual(expect.arrayContaining(['TrackingClientOptions', 'PollOptions', 'RawRequest']));
    expect(new Set(headings).size).toBe(headings.length);
  });

  it('an option whose comment tells no default → named', () => {
    const code =
      'interface UndescribedOptions { /** How long, in milliseconds. */ readonly lengthMs?: number }';
    const [type] = ts.createSourceFile('a.ts', code, ts.ScriptTarget.Latest, true).statements;
    expect(type !== undefined && ts.isInterfaceDeclaration(type)).toBe(true);
    // Proved by the line above.
    expect(() => optionTable(type as ts.InterfaceDeclaration)).toThrow(
      'the comment of `UndescribedOptions.lengthMs` to tell the default',
    );
  });
});
