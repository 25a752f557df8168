// Writes the API reference to docs/api, or with `--check` to a folder that is removed again. Fails when the reference has a
// broken link, or when the comment of an export or of one of its members is incomplete.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  Application,
  Comment,
  type DeclarationReflection,
  type ProjectReflection,
  ReflectionKind,
  type SignatureReflection,
  TypeDocReader,
} from 'typedoc';
import { arrangeReference } from './support/reference.ts';

/** If a name ends with a unit, its comment must contain the word for it. */
const UNITS = [
  [/Ms$/, /\bmilliseconds?\b/i],
  [/Bytes$/, /\bbytes?\b/i],
  [/PerSecond$/, /\bseconds?\b/i],
] as const;

/** These documents are not published, so the reference must not name them. */
const INTERNAL = /\bdesign\.md\b|\bpublic contract\b/;

function readText(comment: Comment | undefined): string {
  // Skip `@category`, which only names the group of an export.
  const described = comment?.blockTags.filter(({ tag }) => tag !== '@category') ?? [];
  const tags = described.flatMap(({ content }) => content);
  return Comment.combineDisplayParts([...(comment?.summary ?? []), ...tags]).trim();
}

function* missingInCall({ comment, parameters = [], type, parent }: SignatureReflection): Generator<string> {
  const isConstructor = parent.kindOf(ReflectionKind.Constructor);
  const summary = Comment.combineDisplayParts(comment?.summary).trim();
  if (!isConstructor && !/[.?:]$/.test(summary)) yield 'a sentence that says what it does';
  for (const { name, comment: words } of parameters) if (readText(words) === '') yield `@param ${name}`;
  const returnsNothing = ['void', 'Promise<void>', 'this', 'undefined'].includes(String(type));
  if (!isConstructor && !returnsNothing && !comment?.getTag('@returns')) yield '@returns';
}

function* missingInValue(value: DeclarationReflection): Generator<string> {
  const words = readText(value.comment ?? value.getSignature?.comment);
  if (words === '') yield 'words';
  for (const [name, word] of UNITS)
    if (name.test(value.name) && !word.test(words)) yield `the word for the unit (${word.source})`;
}

/** Finds every comment that names an internal document, including those of parameters. */
function* internalReferences(project: ProjectReflection): Generator<string> {
  for (const found of project.getReflectionsByKind(ReflectionKind.All)) {
    if (INTERNAL.test(readText(found.comment)))
      yield `Expected the comment of ${found.getFriendlyFullName()} to name no internal document`;
  }
}

function* complaintsAbout(project: ProjectReflection): Generator<string> {
  for (const found of project.getReflectionsByKind(ReflectionKind.All)) {
    if (!found.isDeclaration() || found.isReference() || found.inheritedFrom !== undefined) continue;
    const { parent, implementationOf } = found;
    const isCallable = found.kindOf([ReflectionKind.FunctionOrMethod, ReflectionKind.Constructor]);
    const calls = isCallable ? (found.signatures ?? []) : [];
    const isExport = parent?.kindOf(ReflectionKind.Module);
    const isField = parent?.kindOf(ReflectionKind.Interface) && !isCallable;
    // Skip members that the language or another package prescribes, and `kind`, which marks a class of errors.
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
arrangeReference(app);
const project = await app.convert();
if (project === undefined) process.exit(1);
app.validate(project);
for (const complaint of [...complaintsAbout(project), ...internalReferences(project)])
  app.logger.error(complaint);
const isBad = () => app.logger.hasErrors() || app.logger.hasWarnings();
if (isBad()) process.exit(1);
const scratch = process.argv.includes('--check') ? await mkdtemp(join(tmpdir(), 'reference-')) : undefined;
if (scratch !== undefined) {
  app.options.setValue('out', scratch);
  // Nobody reads these pages, and coloured code takes a quarter of the time.
  app.options.setValue('ignoredHighlightLanguages', app.options.getValue('highlightLanguages'));
}
// TypeDoc checks links to headings while it writes the pages.
await app.generateOutputs(project);
if (scratch !== undefined) await rm(scratch, { recursive: true });
if (isBad()) process.exit(1);
