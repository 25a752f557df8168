// Writes the API reference to docs/api, as typedoc.json says; with `--check` it writes nothing. Either way it fails when the
// comment of something that users can import says too little.
import {
  Application,
  Comment,
  type DeclarationReflection,
  type ProjectReflection,
  ReflectionKind,
  type SignatureReflection,
  TypeDocReader,
} from 'typedoc';

/** Names that tell a unit, and the word for it. */
const UNITS = [
  [/Ms$/, /\bmilliseconds?\b/i],
  [/Bytes$/, /\bbytes?\b/i],
  [/PerSecond$/, /\bseconds?\b/i],
] as const;

function textOf(comment: Comment | undefined): string {
  const tags = comment?.blockTags.flatMap(({ content }) => content) ?? [];
  return Comment.combineDisplayParts([...(comment?.summary ?? []), ...tags]).trim();
}

function* missingInCall({ comment, parameters = [], type, parent }: SignatureReflection): Generator<string> {
  const isConstructor = parent.kindOf(ReflectionKind.Constructor);
  const summary = Comment.combineDisplayParts(comment?.summary).trim();
  if (!isConstructor && !/[.?:]$/.test(summary)) yield 'a sentence that says what it does';
  for (const { name, comment: words } of parameters) if (textOf(words) === '') yield `@param ${name}`;
  const returnsNothing = ['void', 'Promise<void>', 'this', 'undefined'].includes(String(type));
  if (!isConstructor && !returnsNothing && !comment?.getTag('@returns')) yield '@returns';
}

function* missingInValue(value: DeclarationReflection): Generator<string> {
  const words = textOf(value.comment ?? value.getSignature?.comment);
  if (words === '') yield 'words';
  for (const [name, word] of UNITS)
    if (name.test(value.name) && !word.test(words)) yield `the word for the unit (${word.source})`;
}

function* complaintsAbout(project: ProjectReflection): Generator<string> {
  for (const found of project.getReflectionsByKind(ReflectionKind.All)) {
    if (!found.isDeclaration() || found.isReference() || found.inheritedFrom !== undefined) continue;
    const { parent, implementationOf } = found;
    const isCallable = found.kindOf([ReflectionKind.FunctionOrMethod, ReflectionKind.Constructor]);
    const calls = isCallable ? (found.signatures ?? []) : [];
    const isExport = parent?.kindOf(ReflectionKind.Module);
    const isField = parent?.kindOf(ReflectionKind.Interface) && !isCallable;
    // Not what the language or another package asks for, nor how copies of this package know each other's classes.
    const isForeign = implementationOf?.package !== undefined || found.name.startsWith('[');
    const isMember = parent?.kindOf(ReflectionKind.Class) && !isForeign && found.name !== 'kind';
    if (!isExport && !isField && !isMember) continue;
    const missing =
      calls.length > 0 ? calls.flatMap((call) => [...missingInCall(call)]) : missingInValue(found);
    for (const words of missing)
      yield `Expected the comment of ${found.getFriendlyFullName()} to have ${words}`;
  }
}

const app = await Application.bootstrap({}, [new TypeDocReader()]);
const project = await app.convert();
if (project === undefined) process.exit(1);
app.validate(project);
for (const complaint of complaintsAbout(project)) app.logger.error(complaint);
if (app.logger.hasErrors() || app.logger.hasWarnings()) process.exit(1);
if (!process.argv.includes('--check')) await app.generateOutputs(project);
