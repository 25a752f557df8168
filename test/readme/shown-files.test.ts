import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parseMarkdown, readDocument } from './support/documents.ts';

/** The JavaScript files of a page: their paths, which their first lines name, and their texts. */
const shown = parseMarkdown(readDocument('docs/testing.md')).blocks.flatMap(({ language, code }) => {
  const [, path, text] = /^\/\/ (\S+\.js)\n([\s\S]*)$/.exec(code) ?? [];
  return language === 'js' && path !== undefined && text !== undefined ? [[path, text] as const] : [];
});

describe('the files for jest in docs/testing.md', () => {
  it.each(shown)('%s → the file of the jest app, whose tests run it', (path, text) => {
    const file = `test/consumers/jest-cjs/${path}`;
    expect(existsSync(file)).toBe(true);
    expect(readDocument(file)).toBe(text);
  });

  it('all of them → found', () => {
    expect(shown.map(([path]) => path)).toEqual(['test/shop.test.js', 'jest.config.js']);
  });
});
