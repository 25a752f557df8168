import { posix } from 'node:path';
import ts from 'typescript';
import { ENTRY_POINTS } from '../support/entry-points.ts';
import { parseSource } from './source-file.ts';

/** A declaration that users can import. */
export interface ExportedType {
  readonly name: string;
  /** The file that declares it. */
  readonly path: string;
}

/** Every interface that an entry point exports, in the order of the exports. */
export function exportedInterfaces(): ExportedType[] {
  const found = new Map(
    Object.values(ENTRY_POINTS)
      .flatMap(interfacesOf)
      .map((type) => [`${type.path} ${type.name}`, type]),
  );
  return [...found.values()];
}

/** An interface of a file. */
export function findInterface({ name, path }: ExportedType): ts.InterfaceDeclaration | undefined {
  return parseSource(path)
    .statements.filter(ts.isInterfaceDeclaration)
    .find((statement) => statement.name.text === name);
}

function interfacesOf(entryPoint: string): ExportedType[] {
  const { statements } = parseSource(entryPoint);
  const own = statements
    .filter(ts.isInterfaceDeclaration)
    .filter(({ modifiers }) => modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword))
    .map((statement) => ({ name: statement.name.text, path: entryPoint }));
  const passedOn = statements
    .filter(ts.isExportDeclaration)
    .flatMap((statement) => namesOf(statement, entryPoint));
  return [...own, ...passedOn.filter((type) => findInterface(type) !== undefined)];
}

function namesOf({ exportClause, moduleSpecifier }: ts.ExportDeclaration, entryPoint: string) {
  if (exportClause === undefined || !ts.isNamedExports(exportClause)) return [];
  if (moduleSpecifier === undefined || !ts.isStringLiteral(moduleSpecifier)) return [];
  const path = posix.join(posix.dirname(entryPoint), moduleSpecifier.text);
  return exportClause.elements.map(({ name }) => ({ name: name.text, path }));
}
