/** The facts that decide whether a release may be made. */
export interface ReleaseFacts {
  readonly manifest: { readonly version: string; readonly repository?: unknown };
  /** The version in the sources. */
  readonly version: string;
  readonly changelog: string;
  /** Whether README.md installs the package from npm. */
  readonly isPublished: boolean;
  /** The uncommitted changes, as `git status --porcelain` prints them. */
  readonly changes: string;
}

/** Returns the reasons why there can be no release. */
export function findObstacles({
  manifest,
  version,
  changelog,
  isPublished,
  changes,
}: ReleaseFacts): string[] {
  const [, released, date = ''] = /^## (\S+)(?: - (.+))?$/m.exec(changelog) ?? [];
  const rules: [isKept: boolean, obstacle: string][] = [
    [manifest.version === version, `package.json has version ${manifest.version}, the client has ${version}`],
    [released === version, `the newest entry of CHANGELOG.md is ${released}, not ${version}`],
    [/^\d{4}-\d{2}-\d{2}$/.test(date), `CHANGELOG.md has "${date}" instead of a date for ${released}`],
    // npm derives the homepage and the address for bugs from `repository`.
    [
      Boolean(manifest.repository),
      'package.json has no `repository`; set it to the address of the repository',
    ],
    [
      isPublished,
      'README.md installs the package from a clone; set `IS_PUBLISHED` in scripts/support/published.ts, and run `npm run readme`',
    ],
    [changes.trim() === '', `these changes are not committed:\n${changes.trim()}`],
  ];
  return rules.flatMap(([isKept, obstacle]) => (isKept ? [] : obstacle));
}
