import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const ROOT = new URL('../../', import.meta.url);

const parsed = new Map<string, ts.SourceFile>();

/** A source file as its syntax tree; no types are resolved, so it costs milliseconds. */
export function parseSource(path: string): ts.SourceFile {
  const known = parsed.get(path);
  if (known !== undefined) return known;
  const file = fileURLToPath(new URL(path, ROOT));
  const source = ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, true);
  parsed.set(path, source);
  return source;
}

/** The words of a declaration's comment, without its tags. */
export function commentOf(node: ts.Node): string {
  const docs = ts.getJSDocCommentsAndTags(node).filter(ts.isJSDoc);
  return docs.map(({ comment }) => ts.getTextOfJSDocComment(comment) ?? '').join(' ');
}

/** What stands behind the `@example` of a declaration's comment, if it has one. */
export function exampleOf(node: ts.Node): string | undefined {
  const tag = ts.getJSDocTags(node).find(({ tagName }) => tagName.text === 'example');
  return tag && ts.getTextOfJSDocComment(tag.comment);
}
