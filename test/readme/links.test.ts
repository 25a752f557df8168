import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { ALL_DOCUMENTS, anchorOf, parseMarkdown, readDocument, USER_DOCUMENTS } from './support/documents.ts';

const ROOT = new URL('../../', import.meta.url);

function anchorsOf(text: string): string[] {
  return parseMarkdown(text).headings.map(anchorOf);
}

/** The links of a document that lead nowhere; those to other sites are not looked at. */
function brokenLinks(document: URL, text: string): string[] {
  const targets = [...parseMarkdown(text).prose.matchAll(/\]\(([^)\s]+)\)/g)].flatMap(
    ([, target]) => target ?? [],
  );
  return targets.filter((target) => {
    if (/^https?:/.test(target)) return false;
    const [path = '', anchor] = target.split('#');
    const file = new URL(path, document);
    if (path !== '' && !existsSync(file)) return true;
    const linked = path === '' ? text : readFileSync(file, 'utf8');
    return anchor !== undefined && !anchorsOf(linked).includes(anchor);
  });
}

describe('the links of', () => {
  it.each(ALL_DOCUMENTS)('%s → lead somewhere', (path) => {
    const broken = brokenLinks(new URL(path, ROOT), readDocument(path));
    expect(broken, broken.join('\n')).toEqual([]);
  });

  it('README.md → reach every page of docs/', () => {
    const readme = readDocument('README.md');
    const pages = USER_DOCUMENTS.filter((path) => path.startsWith('docs/'));
    expect(pages.filter((path) => !readme.includes(`](${path}`))).toEqual([]);
  });

  it('a document with a missing file and a missing heading → both are named', () => {
    const text = '# Here\n[a](#here) [b](#there) [c](LICENSE) [d](MISSING.md) [e](README.md#install)';
    expect(brokenLinks(new URL('README.md', ROOT), text)).toEqual(['#there', 'MISSING.md']);
  });
});
