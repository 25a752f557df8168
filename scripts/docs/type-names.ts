// Gives types the names that users import. `Tracker` is made by a schema, and the compiler knows such a type by its
// fields only: without this the reference would list all of them wherever a tracker is meant.
import {
  type Application,
  Comment,
  type Context,
  Converter,
  type DeclarationReflection,
  ReflectionKind,
} from 'typedoc';
import ts from 'typescript';

/** True for a type that is computed from a value: users want to read the result, not the formula. */
function isComputed(declaration: ts.TypeAliasDeclaration): boolean {
  return declaration.typeParameters === undefined && /\btypeof\b/.test(declaration.type.getText());
}

function computedTypesOf(program: ts.Program): ts.TypeAliasDeclaration[] {
  const own = program.getSourceFiles().filter((file) => !program.isSourceFileFromExternalLibrary(file));
  return own.flatMap((file) => file.statements.filter(ts.isTypeAliasDeclaration).filter(isComputed));
}

/** Makes the compiler use the names of computed types wherever it meets these types. */
function nameTypes(program: ts.Program): Map<ts.Symbol, ts.Type> {
  const checker = program.getTypeChecker();
  const types = new Map<ts.Symbol, ts.Type>();
  for (const { name } of computedTypesOf(program)) {
    const symbol = checker.getSymbolAtLocation(name);
    if (symbol === undefined) continue;
    const type = checker.getTypeAtLocation(name);
    type.aliasSymbol = symbol;
    delete type.aliasTypeArguments;
    types.set(symbol, type);
  }
  return types;
}

function declarationOf(context: Context, reflection: DeclarationReflection): ts.Declaration | undefined {
  return context.getSymbolFromReflection(reflection)?.declarations?.[0];
}

/** Reads a property as its users think of it. */
function readProperty(context: Context, property: DeclarationReflection): void {
  const declaration = declarationOf(context, property);
  if (declaration === undefined) return;
  // What a schema is written with is no default.
  if (ts.isPropertyAssignment(declaration) || ts.isShorthandPropertyAssignment(declaration)) {
    delete property.defaultValue;
  }
  // The compiler copies the types of a class for its `this`, and the copies have no names.
  if (!ts.isPropertyDeclaration(declaration) || declaration.type === undefined) return;
  context.project.removeTypeReflections(property.type);
  property.type = context.converter.convertType(context.withScope(property), declaration.type);
}

/** The class of zod that a schema is, however many interfaces of ours stand between. */
function zodClassOf(type: ts.Type): ts.Symbol | undefined {
  const { symbol } = type;
  if (symbol?.name.startsWith('Zod')) return symbol;
  const [base] = type.isClassOrInterface() ? (type.getBaseTypes() ?? []) : [];
  return base && zodClassOf(base);
}

/** Shows a schema by its class: what it holds is told by the type that it makes. */
function shortenSchema(context: Context, constant: DeclarationReflection): void {
  const declaration = declarationOf(context, constant);
  if (declaration === undefined || !constant.name.endsWith('Schema')) return;
  const symbol = zodClassOf(context.checker.getTypeAtLocation(declaration));
  if (symbol === undefined) return;
  context.project.removeTypeReflections(constant.type);
  constant.type = context.createSymbolReference(symbol, context, symbol.name);
}

/** How the language itself and copies of this package deal with our classes: nothing that anybody calls by name. */
function isMachinery({ name, flags }: DeclarationReflection): boolean {
  return name.startsWith('[') || (name === 'kind' && flags.isStatic);
}

/**
 * Shows types by the names that users import.
 *
 * @param app - changed: it hears of every conversion
 */
export function keepTypeNames(app: Application): void {
  const types = new Map<ts.Symbol, ts.Type>();
  const machinery: DeclarationReflection[] = [];
  let giveNameBack = () => {};

  /** Shows what a computed type holds; by its own name it would say nothing about itself. */
  function showFields(context: Context, alias: DeclarationReflection): void {
    const symbol = context.getSymbolFromReflection(alias);
    const type = symbol && types.get(symbol);
    if (symbol === undefined || type === undefined) return;
    delete type.aliasSymbol;
    giveNameBack = () => {
      type.aliasSymbol = symbol;
    };
    alias.comment ??= new Comment();
    alias.comment.modifierTags.add('@useDeclaredType');
  }

  app.converter.on(Converter.EVENT_BEGIN, ({ programs }: Context) => {
    for (const program of programs) for (const [symbol, type] of nameTypes(program)) types.set(symbol, type);
  });
  app.converter.on(Converter.EVENT_CREATE_DECLARATION, (context: Context, found: DeclarationReflection) => {
    giveNameBack();
    giveNameBack = () => {};
    if (isMachinery(found)) machinery.push(found);
    else if (found.kindOf(ReflectionKind.Variable)) shortenSchema(context, found);
    else if (found.kindOf(ReflectionKind.Property)) readProperty(context, found);
    else if (found.kindOf(ReflectionKind.TypeAlias)) showFields(context, found);
  });
  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }: Context) => {
    for (const reflection of machinery) project.removeReflection(reflection);
  });
}
