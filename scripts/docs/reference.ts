// The API reference: what is in it, and what must be said there. TypeDoc does the work.
import { fileURLToPath } from 'node:url';
import { Application, Logger, LogLevel, OptionDefaults, type ProjectReflection } from 'typedoc';
import { ENTRY_POINTS } from '../support/entry-points.ts';
import { checkComments } from './comment-rules.ts';
import { linkNames } from './link-names.ts';
import { keepTypeNames } from './type-names.ts';

/** What is read to make a reference. */
export interface ReferenceInput {
  /** Files whose exports users import. */
  readonly entryPoints: readonly string[];
  readonly tsconfig: string;
  /** Types that exports mention and users have no need to import. */
  readonly notExported?: readonly string[];
  /** Fields of types without a name, which the comment of what holds them tells about. */
  readonly notDocumented?: readonly string[];
}

/** A reference that is ready to be written. */
export interface Reference {
  readonly project: ProjectReflection;
  /** What is wrong with the comments, one line each. */
  readonly complaints: readonly string[];
  /** Writes the pages into a folder. */
  write(folder: string): Promise<void>;
}

class Complaints extends Logger {
  readonly lines: string[] = [];

  override log(message: string, level: LogLevel): void {
    if (level >= LogLevel.Warn) this.lines.push(message);
  }
}

const fromRoot = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));

/** The package. */
export const PACKAGE: ReferenceInput = {
  entryPoints: Object.values(ENTRY_POINTS).map(fromRoot),
  tsconfig: fromRoot('scripts/docs/tsconfig.src.json'),
  notExported: ['QueryValue', 'Reply', 'Unwrap'],
  notDocumented: [
    'tracking-client.isTrackingError.__type.code',
    'tracking-client/redis.IoredisClient.pipeline.__type.exec',
    'tracking-client/postgres.Queryable.query.__type.rows',
    'tracking-client/postgres.ConnectionPool.query.__type.rows',
    'tracking-client/postgres.PooledConnection.query.__type.rows',
    'tracking-client/postgres.TransactionRunner.query.__type.rows',
    'tracking-client/postgres.TransactionOf.__type.connect',
    'tracking-client/postgres.TransactionOf.__type.transaction',
    'tracking-client/testing.FakePlans.perShipment.__type.quota',
    'tracking-client/testing.FakePlans.perShipment.__type.bulkCreateLimit',
    'tracking-client/testing.FakePlans.perCall.__type.quota',
    'tracking-client/testing.WebhookSenderOptions.until2xx.__type.maxAttempts',
    'tracking-client/testing.WebhookSenderOptions.until2xx.__type.delayMs',
  ],
};

function createApplication({ entryPoints, tsconfig, notExported = [], notDocumented = [] }: ReferenceInput) {
  return Application.bootstrap({
    name: 'tracking-client',
    includeVersion: true,
    entryPoints: [...entryPoints],
    alwaysCreateEntryPointModule: true,
    tsconfig,
    readme: 'none',
    // The compiler runs as a step of its own.
    skipErrorChecking: true,
    // The pages are read without the repository at hand.
    disableSources: true,
    excludeExternals: true,
    excludeInternal: true,
    excludePrivate: true,
    excludeProtected: true,
    blockTags: [...OptionDefaults.blockTags, '@specification'],
    intentionallyNotExported: [...notExported],
    intentionallyNotDocumented: [...notDocumented],
    validation: {
      notExported: true,
      notDocumented: true,
      invalidLink: true,
      invalidPath: true,
      rewrittenLink: true,
      unusedMergeModuleWith: true,
    },
    requiredToBeDocumented: [
      'Module',
      'Variable',
      'Function',
      'Class',
      'Interface',
      'TypeAlias',
      'Property',
      'Accessor',
      'Method',
    ],
  });
}

/**
 * Reads the exports with their comments, and checks these.
 *
 * @throws Error when the sources cannot be read at all
 */
export async function createReference(input: ReferenceInput): Promise<Reference> {
  const app = await createApplication(input);
  const log = new Complaints();
  app.logger = log;
  keepTypeNames(app);
  const project = await app.convert();
  if (project === undefined) throw new Error(`Expected sources to read, got none: ${log.lines.join('; ')}`);
  app.validate(project);
  log.lines.push(...checkComments(project));
  linkNames(project);
  return { project, complaints: log.lines, write: (folder) => app.generateDocs(project, folder) };
}
