import ts from 'typescript';
import { type ExportedType, findInterface } from './exported-types.ts';
import { commentOf, exampleOf } from './source-file.ts';

/** One option as its source describes it. */
export interface DescribedOption {
  readonly name: string;
  readonly type: string;
  readonly isRequired: boolean;
  readonly comment: string;
  readonly example: string | undefined;
}

/** Options that a type takes over from another one. */
export interface InheritedOptions {
  readonly from: string;
  readonly without: readonly string[];
}

/** An options type as its source describes it. */
export interface DescribedOptions {
  readonly name: string;
  readonly comment: string;
  readonly options: readonly DescribedOption[];
  readonly inherited: readonly InheritedOptions[];
}

/**
 * Reads the comments of an options type.
 *
 * @throws Error naming the option whose comment does not tell what happens without it
 */
export function describeOptions(exported: ExportedType): DescribedOptions {
  const declaration = findInterface(exported);
  if (declaration === undefined) {
    throw new Error(`Expected ${exported.path} to declare the interface ${exported.name}, got none`);
  }
  const options = declaration.members.filter(ts.isPropertySignature).map(describeOption);
  for (const option of options) {
    if (tellsDefault(option)) continue;
    throw new Error(
      `Expected the comment of \`${exported.name}.${option.name}\` in ${exported.path} to tell the default`,
    );
  }
  const inherited = (declaration.heritageClauses ?? []).flatMap(({ types }) => types.map(describeInherited));
  return { name: exported.name, comment: wordsOf(commentOf(declaration)), options, inherited };
}

/** A callback that is not given is not called; that goes without saying. */
function tellsDefault({ isRequired, type, comment }: DescribedOption): boolean {
  return isRequired || type.startsWith('(') || /\bdefault\b/i.test(comment);
}

function describeOption(member: ts.PropertySignature): DescribedOption {
  return {
    name: member.name.getText(),
    type: typeText(member.type),
    isRequired: member.questionToken === undefined,
    comment: wordsOf(commentOf(member)),
    example: exampleOf(member)?.trim(),
  };
}

/** The text of a type as a caller thinks of it: that an option may be left out is told by its row. */
function typeText(node: ts.TypeNode | undefined): string {
  if (node === undefined) return '';
  if (ts.isParenthesizedTypeNode(node)) return typeText(node.type);
  if (!ts.isUnionTypeNode(node)) return withoutReadonly(node);
  const given = node.types.filter(({ kind }) => kind !== ts.SyntaxKind.UndefinedKeyword);
  const [only] = given;
  return given.length === 1 ? typeText(only) : given.map(withoutReadonly).join(' | ');
}

/** Nobody writes an option to change it later. */
function withoutReadonly(node: ts.TypeNode): string {
  return node.getText().replace(/\breadonly /g, '');
}

/** Comments also name the sections of the specification, which users do not have. */
function wordsOf(comment: string): string {
  return comment
    .replace(/\{@link ([^}]+)\}/g, '`$1`')
    .replace(/\s*\((?:service\.md|public contract)[^)]*\)/g, '');
}

function describeInherited(node: ts.ExpressionWithTypeArguments): InheritedOptions {
  const [from, without] = node.typeArguments ?? [];
  if (node.expression.getText() !== 'Omit' || from === undefined) {
    return { from: node.expression.getText(), without: [] };
  }
  return {
    from: from.getText(),
    without: [...(without?.getText() ?? '').matchAll(/'(\w+)'/g)].flatMap(second),
  };
}

function second([, name]: RegExpExecArray): string[] {
  return name === undefined ? [] : [name];
}
