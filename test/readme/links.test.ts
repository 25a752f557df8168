import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { ENTRY_POINTS } from '../../scripts/support/entry-points.ts';
import {
  ALL_DOCUMENTS,
  buildAnchor,
  parseMarkdown,
  readDocument,
  USER_DOCUMENTS,
} from './support/documents.ts';

const ROOT = new URL('../../', import.meta.url);

function listAnchors(text: string): string[] {
  return parseMarkdown(text).headings.map(buildAnchor);
}

/** Returns the broken links of a document; links to other sites are not checked. */
function findBrokenLinks(document: URL, text: string): string[] {
  const links = parseMarkdown(text).prose.matchAll(/\]\(([^)\s]+)\)|<img src="([^"]+)"/g);
  const targets = [...links].flatMap(([, target, picture]) => target ?? picture ?? []);
  return targets.filter((target) => {
    if (/^https?:/.test(target)) return false;
    const [path = '', anchor] = target.split('#');
    const file = new URL(path, document);
    if (path !== '' && !existsSync(file)) return true;
    const linked = path === '' ? text : readFileSync(file, 'utf8');
    return anchor !== undefined && !listAnchors(linked).includes(anchor);
  });
}

/** The files and folders of this repository that a document names, in its text or in a picture, and that are gone. */
function findGoneFiles(document: URL, text: string): string[] {
  const { blocks, prose } = parseMarkdown(text);
  const pictures = blocks.filter(({ language }) => language === 'text').map(({ code }) => code);
  const inPictures = pictures.flatMap(
    (code) => code.match(/\b(?:src|test|scripts|bench)\/[\w/.-]*\w\.ts|\bsrc\/\w+\//g) ?? [],
  );
  const inText = [...prose.matchAll(/`((?:[\w-]+\/)+(?:[\w.-]+\.\w+)?)`/g)].flatMap(([, path]) => path ?? []);
  // A path may be relative to the root, to the document's folder, or to the sources.
  const bases = [ROOT, document, new URL('src/', ROOT)];
  return [...inPictures, ...inText].filter((path) => !bases.some((base) => existsSync(new URL(path, base))));
}

describe('the files that a document names', () => {
  it.each(ALL_DOCUMENTS.filter((path) => path !== 'CHANGELOG.md'))('%s → all exist', (path) => {
    const gone = findGoneFiles(new URL(path, ROOT), readDocument(path));
    expect(gone, gone.join('\n')).toEqual([]);
  });

  it('a document with files that are gone → they are named', () => {
    const text =
      '`http/execute.ts`, `http/gone.ts`, `src/never-there/`\n```text\nsrc/gone/ and src/limiter/\n```\n';
    expect(findGoneFiles(ROOT, text)).toEqual(['src/gone/', 'http/gone.ts', 'src/never-there/']);
  });
});

describe('the links of', () => {
  it.each(ALL_DOCUMENTS)('%s → have existing targets', (path) => {
    const broken = findBrokenLinks(new URL(path, ROOT), readDocument(path));
    expect(broken, broken.join('\n')).toEqual([]);
  });

  it('README.md → lead to every page of docs/ but the evidence for comments', () => {
    const readme = readDocument('README.md');
    const pages = USER_DOCUMENTS.filter((path) => path.startsWith('docs/') && path !== 'docs/service.md');
    expect(readme).not.toContain('](docs/service.md');
    expect(pages.filter((path) => !readme.includes(`](${path}`))).toEqual([]);
  });

  it('the API reference → links every entry point and every page of docs/ once', () => {
    // Written by hand, and checked by `npm run docs`.
    const { entryPoints, projectDocuments } = JSON.parse(readDocument('typedoc.json')) as {
      entryPoints: readonly string[];
      projectDocuments: readonly string[];
    };
    const pages = USER_DOCUMENTS.filter((path) => path.startsWith('docs/'));
    expect(entryPoints.toSorted()).toEqual(Object.values(ENTRY_POINTS).toSorted());
    expect(projectDocuments.toSorted()).toEqual([...pages, 'docs/recipes/*.md'].toSorted());
  });

  it('a document with a missing file, picture and heading → all are named', () => {
    const text =
      '# Here\n[a](#here) [b](#there) [c](LICENSE) [d](MISSING.md) [e](README.md#install)\n<img src="gone.svg">';
    expect(findBrokenLinks(new URL('README.md', ROOT), text)).toEqual(['#there', 'MISSING.md', 'gone.svg']);
  });
});
