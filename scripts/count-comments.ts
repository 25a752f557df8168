// Prints how many lines of comments `src` has: those of exported declarations and their public members, and all others.
import { readdirSync, readFileSync } from 'node:fs';
import ts from 'typescript';

/** Tells whether users may see a declaration, and thus its comment. */
function isPublic(node: ts.Node): boolean {
  if (ts.isSourceFile(node)) return false;
  // An editor shows the fields of a schema at the type that is inferred from it.
  if (ts.isVariableDeclaration(node) && node.name.getText().endsWith('Fields')) return true;
  if (ts.isClassElement(node) && node.name !== undefined && ts.isPrivateIdentifier(node.name)) return false;
  const isExported =
    ts.canHaveModifiers(node) &&
    ts.getModifiers(node)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword);
  return isExported === true || isPublic(node.parent);
}

const lines = { public: 0, other: 0 };
for (const path of readdirSync('src', { recursive: true, encoding: 'utf8' })) {
  if (!path.endsWith('.ts')) continue;
  const text = readFileSync(`src/${path}`, 'utf8');
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const publicComments = new Set<number>();
  const collect = (node: ts.Node): void => {
    const isInBody = ts.findAncestor(node, (above) => ts.isBlock(above)) !== undefined;
    if (!isInBody && isPublic(node))
      for (const { pos } of ts.getJSDocCommentsAndTags(node)) publicComments.add(pos);
    node.forEachChild(collect);
  };
  collect(file);
  const seen = new Set<number>();
  const count = (node: ts.Node): void => {
    for (const { pos, end } of ts.getLeadingCommentRanges(text, node.getFullStart()) ?? []) {
      if (seen.has(pos)) continue;
      seen.add(pos);
      lines[publicComments.has(pos) ? 'public' : 'other'] += text.slice(pos, end).split('\n').length;
    }
    for (const child of node.getChildren(file)) count(child);
  };
  count(file);
}
console.log(`${lines.public} lines of comments on what is exported, ${lines.other} others`);
