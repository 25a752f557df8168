import { describe, expect, test } from 'vitest';
import { findObstacles } from '../../scripts/support/release-rules.ts';

const READY = {
  manifest: { version: '1.2.3', repository: 'github:someone/tracking-client' },
  version: '1.2.3',
  changelog: '# Changelog\n\n## 1.2.3 - 2026-12-01\n\n## 1.2.2 - 2026-11-01\n',
  isPublished: true,
  changes: '',
};

describe('a release', () => {
  test('a repository, one version, a date and no open change → no obstacle', () => {
    expect(findObstacles(READY)).toEqual([]);
  });

  test.each([
    ['no repository', { manifest: { version: '1.2.3' } }, 'package.json has no `repository`'],
    [
      'another version in package.json',
      { manifest: { ...READY.manifest, version: '1.2.4' } },
      'package.json has',
    ],
    [
      'no entry in the changelog',
      { changelog: '## 1.2.2 - 2026-11-01\n' },
      'the newest entry of CHANGELOG.md is 1.2.2',
    ],
    ['an entry without a date', { changelog: '## 1.2.3\n' }, 'instead of a date for 1.2.3'],
    [
      'an entry that is not released',
      { changelog: '## 1.2.3 - Unreleased\n' },
      'has "Unreleased" instead of a date for 1.2.3',
    ],
    ['a README that installs from a clone', { isPublished: false }, 'set `IS_PUBLISHED` in'],
    ['an open change', { changes: ' M src/index.ts\n' }, 'these changes are not committed:\nM src/index.ts'],
  ])('%s → one obstacle that names it', (_what, facts, obstacle) => {
    expect(findObstacles({ ...READY, ...facts })).toEqual([expect.stringContaining(obstacle)]);
  });
});
