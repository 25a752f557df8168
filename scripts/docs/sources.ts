// How comments name the place of the specification that rules what they describe, and which must.
import { Comment, DeclarationReflection, type Reflection, ReflectionKind } from 'typedoc';
import { endpoints } from '../../src/endpoints.ts';
import { tagOf } from './tags.ts';

const SECTIONS = ['1', '2', '2.1', '2.2', '2.3', '2.4', '3', '4', '5', '6', '7', '8', '9'];
const FORM = /^(?:service\.md (?<sections>\d[\d., ]*))?(?<between>; )?(?<contract>public contract)?$/;

/** Files all of whose exports the specification rules. */
const RULED_FILES = /^src\/(schemas\/(?!record\.)|endpoints\.ts|resources\/(trackers|tracking|couriers)\.ts)/;

/** What it rules elsewhere. */
const RULED = [
  'RequestValidationError',
  'WebhookAuthenticationError',
  'WebhookParseError',
  'RateLimitInfo',
  'TokenBucketLimiter',
  'RedisLimiter',
  'parseWebhook',
  'webhookAuthenticator',
  'createWebhookHandler',
  'WebhookInbox',
  'MemoryDedupeStore',
  'RedisDedupeStore',
  'PostgresDedupeStore',
  'transactionalInbox',
  'eventKey',
  'proofOfDeliveryKey',
  'compareEvents',
  'sortEvents',
  'parseOccurrenceDatetime',
  'createFakeTrackingService',
  'createWebhookSender',
  'FakePlans',
  'LimitWindow',
  'buildCourier',
  'buildDelivery',
  'buildEvent',
  'buildProofOfDelivery',
  'buildTracker',
  'buildTracking',
];

function isApiError(reflection: Reflection): boolean {
  if (!(reflection instanceof DeclarationReflection)) return false;
  const parents = reflection.extendedTypes ?? [];
  return (
    reflection.name === 'ApiError' || parents.some((type) => /^(Api|InvalidRequest)Error$/.test(String(type)))
  );
}

function isExport({ parent }: Reflection): boolean {
  return parent?.kindOf(ReflectionKind.Module) === true;
}

/** True when the comment has to name the place: for exports, and for the methods of the client. */
function isRuled(reflection: Reflection): boolean {
  const { parent } = reflection;
  const isMethod = reflection.kindOf(ReflectionKind.Method) && parent?.name.endsWith('Resource') === true;
  if (!isExport(reflection) && !isMethod) return false;
  const file = reflection.project.getSymbolIdFromReflection(reflection)?.packagePath ?? '';
  const isResource = isExport(reflection) && reflection.name.endsWith('Resource');
  const isNamed = isExport(reflection) && RULED.includes(reflection.name);
  return (RULED_FILES.test(file) && !isResource) || isNamed || isApiError(reflection);
}

/** What the table says of a method of the client. */
function sourceInTable(method: Reflection): string | undefined {
  const resource = /^(Trackers|Tracking|Couriers)Resource$/.exec(method.parent?.name ?? '')?.[1];
  const name = `${resource?.toLowerCase()}.${method.name}`;
  return Object.entries(endpoints).find(([endpoint]) => endpoint === name)?.[1].source;
}

function isSource(text: string): boolean {
  const { sections, between, contract } = FORM.exec(text)?.groups ?? {};
  if ((sections ?? contract) === undefined) return false;
  const isWhole = (sections !== undefined && contract !== undefined) === (between !== undefined);
  return isWhole && (sections?.split(', ') ?? []).every((section) => SECTIONS.includes(section));
}

/**
 * What is wrong with the place that a comment names. Exports and methods name it by a tag and nowhere else; options and
 * fields may name it in brackets.
 */
export function* sourceComplaints(reflection: Reflection, comment: Comment | undefined): Generator<string> {
  const cited = tagOf(comment, '@specification');
  const expected = sourceInTable(reflection);
  if (expected !== undefined && cited !== expected) yield `"@specification ${expected}"`;
  else if (cited === undefined && isRuled(reflection)) yield '@specification';
  else if (cited !== undefined && !isSource(cited))
    yield '@specification in the form "service.md 2.1, 4; public contract"';
  const isInBrackets = /\((service\.md|public contract)/.test(Comment.combineDisplayParts(comment?.summary));
  const isNamed = isExport(reflection) || reflection.kindOf(ReflectionKind.Method);
  if (isNamed && isInBrackets) yield 'its place in the specification in the tag only';
}
