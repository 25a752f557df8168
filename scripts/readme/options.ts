import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { ENDPOINT_NAMES, endpoints } from '../../src/endpoints.ts';
import { ENTRY_POINTS } from '../support/entry-points.ts';
import { code, markdownTable } from '../support/markdown-table.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
/** The entry points whose options are listed; options for tests and telemetry are left to the editor. */
const LISTED_ENTRIES = ['index', 'webhooks', 'redis', 'postgres'];
/** A type stands below the types it extends; all others follow in alphabetical order. */
const SHOWN_FIRST = [
  'TrackingClientOptions',
  'RetryOptions',
  'LimiterOptions',
  'RequestOptions',
  'BulkRequestOptions',
  'CreateManyOptions',
  'TrackerRequestOptions',
  'PollOptions',
  'PollManyOptions',
];

const program = ts.createProgram(
  Object.values(ENTRY_POINTS).map((path) => ROOT + path),
  // Skip the types of libraries and of Node, because only the declarations of this package are read.
  { module: ts.ModuleKind.NodeNext, noLib: true, types: [], allowImportingTsExtensions: true, noEmit: true },
);
const checker = program.getTypeChecker();

/** Maps every name that a source exports to its declaration. */
export function readExports(path: string): Map<string, ts.Symbol> {
  const source = program.getSourceFile(ROOT + path);
  const module = source && checker.getSymbolAtLocation(source);
  const exported = module === undefined ? [] : checker.getExportsOfModule(module);
  const isAlias = ({ flags }: ts.Symbol) => (flags & ts.SymbolFlags.Alias) !== 0;
  return new Map(
    exported.map((symbol) => [symbol.name, isAlias(symbol) ? checker.getAliasedSymbol(symbol) : symbol]),
  );
}

/** Lists every endpoint from the table that the client itself uses. */
export function endpointTable(): string {
  const head = ['Method', 'Endpoint', 'Per second', 'Retries', 'What it does'];
  const rows = ENDPOINT_NAMES.map((name) => {
    const { method, path, limitPerSecond, retryClass, summary } = endpoints[name];
    return [code(name), code(`${method} ${path}`), `${limitPerSecond}`, retryClass, summary];
  });
  return markdownTable(head, rows);
}

/** Writes one table of options for each entry point; a type that two entry points export is shown once. */
export function optionTables(): string {
  const shown = new Set<string>();
  const rowsSoFar = new Map<string, Set<string>>();
  const parts = Object.entries(ENTRY_POINTS).flatMap(([entry, path]) => {
    if (!LISTED_ENTRIES.includes(entry)) return [];
    const all = readExports(path);
    const types = [...new Set([...SHOWN_FIRST, ...[...all.keys()].sort()])].flatMap((name) => {
      const declaration = findInterface(all.get(name));
      if (!name.endsWith('Options') || declaration === undefined || shown.has(name)) return [];
      shown.add(name);
      return [{ name, declaration }];
    });
    const heading = `### ${code(entry === 'index' ? 'tracking-client' : `tracking-client/${entry}`)}`;
    return [heading, optionTable(types, rowsSoFar)];
  });
  return parts.join('\n\n');
}

/** Finds the interface of a type of options; in an intersection, it is the first part. */
function findInterface(symbol: ts.Symbol | undefined): ts.InterfaceDeclaration | undefined {
  const alias = symbol?.declarations?.find(ts.isTypeAliasDeclaration);
  if (alias === undefined || !ts.isIntersectionTypeNode(alias.type))
    return symbol?.declarations?.find(ts.isInterfaceDeclaration);
  const [first] = alias.type.types;
  return first && checker.getTypeFromTypeNode(first).symbol.declarations?.find(ts.isInterfaceDeclaration);
}

interface OptionsType {
  readonly name: string;
  readonly declaration: ts.InterfaceDeclaration;
}

/**
 * Puts several types of options into one table. Each begins with a row that names the types it extends, and the options for which
 * every earlier row says the same. If only the default differs, the meaning is "as above".
 *
 * @param rowsSoFar - the different rows of each option, as JSON
 * @throws Error naming an optional field whose comment does not state its default
 */
function optionTable(types: readonly OptionsType[], rowsSoFar: Map<string, Set<string>>): string {
  const rows = types.flatMap(({ name, declaration }) => {
    const parents = (declaration.heritageClauses ?? []).flatMap(({ types }) => types.map(inheritedText));
    const own: string[][] = [];
    const repeated: string[] = [];
    for (const row of optionRows(declaration)) {
      const [option = ''] = row;
      const text = JSON.stringify(row);
      const rows = rowsSoFar.get(option) ?? new Set();
      const isKnown = rows.size > 0 && [...rows].every((earlier) => JSON.parse(earlier)[2] === row[2]);
      if (rows.has(text) && rows.size === 1) repeated.push(option);
      else own.push(isKnown ? [...row.slice(0, 2), 'as above'] : row);
      rowsSoFar.set(option, rows.add(text));
    }
    const extended = parents.length === 0 ? '' : ` extends ${parents.join(', ')}`;
    const asAbove = repeated.length === 0 ? '' : `; ${repeated.join(', ')} as above`;
    return [[`**${code(name)}**${extended}${asAbove}`, '', ''], ...own];
  });
  return markdownTable(['Option', 'Default', 'Meaning'], rows);
}

/**
 * Writes a row with the name, default and meaning of each option; an editor shows the type. An option of a call that only overrides
 * the client's option has no row.
 */
function optionRows(type: ts.InterfaceDeclaration): string[][] {
  return type.members.filter(ts.isPropertySignature).flatMap((member) => {
    const name = member.name.getText();
    const comment = readComment(member);
    const defaultText = readDefault(comment);
    const isRequired = member.questionToken === undefined;
    // A callback needs no default, because an absent callback is not called.
    const isCallback = member.type?.getText().includes('=>') === true;
    if (!isRequired && !isCallback && defaultText === undefined)
      throw new Error(`Expected the comment of \`${type.name.text}.${name}\` to state the default, got none`);
    const meaning = readMeaning(comment);
    // The page says that options whose names end with `Ms` are in milliseconds.
    const unitless = name.endsWith('Ms') ? meaning.replace(/,? in milliseconds/, '') : meaning;
    if (defaultText === "the client's") return [];
    // The page says that an empty cell means no default.
    const shownDefault = defaultText === undefined || defaultText === 'none' ? '' : defaultText;
    return [[code(name), isRequired ? 'required' : shownDefault, unitless]];
  });
}

/** Returns the sentence that states the default without its reason, because an editor shows the whole comment. */
function readDefault(comment: string): string | undefined {
  return splitSentences(comment)
    .find((sentence) => /\bdefault\b/i.test(sentence))
    ?.replace(/^Default:? (.*?)\.?$/, '$1')
    .replace(/(?:[,:]|;(?= \D)) .*/, '')
    .replace('the environment variable ', '');
}

/** Returns the first sentence of a comment; the editor shows the others. */
function readMeaning(comment: string): string {
  const [meaning = ''] = splitSentences(comment).filter((sentence) => !/^Default\b/.test(sentence));
  return meaning.replace(/\.$/, '');
}

/** Splits a comment into sentences; `e.g.` does not end one. */
function splitSentences(text: string): string[] {
  return text.replace(/\s+/g, ' ').split(/(?<=[.?!])(?<!e\.g\.) (?=[A-Z`])/);
}

function readComment(node: ts.Node): string {
  return readText(ts.getJSDocCommentsAndTags(node).find(ts.isJSDoc)?.comment);
}

/** Removes the rules of docs/service.md in brackets, because a table has no room for them. */
function readText(comment: ts.JSDoc['comment']): string {
  const text = (ts.getTextOfJSDocComment(comment) ?? '').replace(/\{@link ([^}]+)\}/g, '`$1`');
  return text.replace(/\s*\(docs\/service\.md[^)]*\)/g, '').trim();
}

function inheritedText({ expression, typeArguments }: ts.ExpressionWithTypeArguments): string {
  const [from, without] = typeArguments ?? [];
  if (expression.getText() !== 'Omit') return code(expression.getText());
  const names = [...(without?.getText() ?? '').matchAll(/'(\w+)'/g)].map(([, name = '']) => code(name));
  return `${code(from?.getText() ?? '')} except ${names.join(', ')}`;
}
