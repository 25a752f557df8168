// What the comment of everything that users can import has to say. TypeDoc itself sees to it that there is one.
import {
  Comment,
  DeclarationReflection,
  type ParameterReflection,
  type ProjectReflection,
  type Reflection,
  ReflectionKind,
  type SignatureReflection,
} from 'typedoc';
import { sourceComplaints } from './sources.ts';
import { tagOf } from './tags.ts';

/** Names that tell a unit, and the word for it. */
const UNITS: readonly (readonly [RegExp, RegExp])[] = [
  [/Ms$/, /\bmilliseconds?\b/i],
  [/Bytes$/, /\bbytes?\b/i],
  [/PerSecond$/, /\bseconds?\b/i],
];

/** What callers hand over to be checked. */
const CHECKED_PARAMETERS =
  /^(options|inputs?|items|query|patch|trackingNumber|payload|callbacks|body|secret|table|endpoint|request)$/;

/** A `@throws` names classes of errors, says whose errors it passes on, or that there are none. */
const KNOWN_FAILURES = /\b[A-Z]\w*Error\b|\bwhat\b|\breason\b|\bown errors?\b|^nothing\b/i;

/** Shapes of objects that other packages make, and describe. */
const FOREIGN_SHAPES =
  /^(Logger|NodeRedisClient|IoredisClient|FastifyLikeReply|ConnectionPool|PooledConnection)$/;

function textOf(comment: Comment | undefined): string {
  if (comment === undefined) return '';
  const contents = comment.blockTags.map(({ content }) => content);
  return [comment.summary, ...contents].map(Comment.combineDisplayParts).join(' ').trim();
}

function isInside(reflection: Reflection, kind: ReflectionKind): boolean {
  const { parent } = reflection;
  return parent !== undefined && (parent.kindOf(kind) || isInside(parent, kind));
}

/** Functions, constructors and methods of ours; not the types of callbacks. */
function isCallable(reflection: Reflection): reflection is SignatureReflection {
  if (!reflection.isSignature() || reflection.inheritedFrom !== undefined) return false;
  const { parent } = reflection;
  const isNamed = parent.kindOf(ReflectionKind.FunctionOrMethod | ReflectionKind.Constructor);
  const isPart = isInside(parent, ReflectionKind.TypeLiteral | ReflectionKind.Parameter);
  return isNamed && !isPart && !isDescribedElsewhere(parent);
}

/** True for a method that another package, or the language, asks for. */
function isDescribedElsewhere({ implementationOf }: DeclarationReflection): boolean {
  return implementationOf !== undefined && implementationOf.package !== 'tracking-client';
}

function returnsSomething({ type, kind }: SignatureReflection): boolean {
  if (kind === ReflectionKind.ConstructorSignature) return false;
  return !['void', 'Promise<void>', 'this', 'undefined'].includes(String(type));
}

function mayFail({ parent, parameters = [] }: SignatureReflection): boolean {
  const isOfError = parent.parent?.name.endsWith('Error') === true;
  // A builder takes every field as it is given.
  if (isOfError || parent.name.startsWith('build')) return false;
  return parameters.some(({ name }) => CHECKED_PARAMETERS.test(name));
}

function* callableComplaints(signature: SignatureReflection): Generator<string> {
  const { comment, parameters = [], parent } = signature;
  const summary = Comment.combineDisplayParts(comment?.summary).trim();
  const isConstructor = parent.kindOf(ReflectionKind.Constructor);
  if (!isConstructor && summary !== '' && !/[.?:]$/.test(summary)) yield 'a sentence that says what it does';
  if (FOREIGN_SHAPES.test(parent.parent?.name ?? '')) return;
  const silent = parameters.filter((parameter) => textOf(parameter.comment) === '');
  for (const { name } of silent) yield `@param ${name}`;
  if (returnsSomething(signature) && !tagOf(comment, '@returns')) yield '@returns';
  const failures = tagOf(comment, '@throws');
  if (failures === undefined ? mayFail(signature) : !KNOWN_FAILURES.test(failures)) {
    yield '@throws with the classes of errors';
  }
}

function isCallback({ type }: DeclarationReflection): boolean {
  return type?.type === 'reflection' && type.declaration.signatures !== undefined;
}

/** A field of a type without a name may leave its words to what holds it. */
function wordsOf(value: Reflection): string {
  const words = textOf(value.comment);
  const holder = value.parent?.kindOf(ReflectionKind.TypeLiteral) ? value.parent.parent : undefined;
  return words === '' && holder !== undefined ? wordsOf(holder) : words;
}

function* valueComplaints(value: DeclarationReflection | ParameterReflection): Generator<string> {
  const words = wordsOf(value);
  for (const [name, word] of UNITS) {
    if (name.test(value.name) && !word.test(words)) yield `the word for the unit (${word.source})`;
  }
  if (!(value instanceof DeclarationReflection) || isCallback(value)) return;
  const isOption = value.parent?.name.endsWith('Options') === true && value.flags.isOptional;
  if (isOption && !/default/i.test(words)) yield 'the default';
}

function* complaintsOf(reflection: Reflection): Generator<string> {
  const { comment } = reflection;
  if (reflection.isReference()) return;
  if (isCallable(reflection)) {
    yield* callableComplaints(reflection);
    yield* sourceComplaints(reflection.parent, comment);
    return;
  }
  if (reflection.isParameter() && isCallable(reflection.parent ?? reflection))
    yield* valueComplaints(reflection);
  if (!(reflection instanceof DeclarationReflection) || reflection.inheritedFrom !== undefined) return;
  const isOfParameter = isInside(reflection, ReflectionKind.Parameter);
  if (reflection.kindOf(ReflectionKind.Property) && !isOfParameter) yield* valueComplaints(reflection);
  if (reflection.signatures === undefined) yield* sourceComplaints(reflection, comment);
}

/** The file that declares something, for a signature the one of its function. */
function fileOf(reflection: Reflection): string {
  const { parent, project } = reflection;
  const file = project.getSymbolIdFromReflection(reflection)?.packagePath;
  return file ?? (parent === undefined ? 'the sources' : fileOf(parent));
}

/**
 * What is missing in the comments of a project.
 *
 * @returns one line for each reflection whose comment says too little
 */
export function checkComments(project: ProjectReflection): string[] {
  return Object.values(project.reflections).flatMap((reflection) => {
    const missing = [...new Set(complaintsOf(reflection))];
    if (missing.length === 0) return [];
    const name = reflection.getFriendlyFullName();
    return [`Expected the comment of ${name} to have ${missing.join(', ')}, in ${fileOf(reflection)}`];
  });
}
