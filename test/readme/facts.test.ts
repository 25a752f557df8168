import * as main from 'tracking-client';
import { describe, expect, it } from 'vitest';
import { installSteps, reportSteps, upgradeSteps } from '../../scripts/readme/install.ts';
import { ENDPOINT_NAMES, endpoints } from '../../src/endpoints.ts';
import { STATUS_MILESTONES } from '../../src/events/statuses.ts';
import { describeMilestone } from '../../src/events/words.ts';
import { readDocument } from './support/documents.ts';

// npm writes this file, so its shape needs no check.
const { dependencies, exports } = JSON.parse(readDocument('package.json')) as {
  dependencies: Record<string, string>;
  exports: Record<string, unknown>;
};

/** The statuses that the tests of the handler cover. */
const WEBHOOK_STATUSES = [200, 400, 401, 405, 413, 415, 422, 500, 503];

/** The cells of one column of the tables in a section, heads and lines left out. */
function readColumn(text: string, heading: string, index: number): string[] {
  const [, section = ''] = text.split(`\n## ${heading}\n`);
  const rows = (section.split('\n## ')[0] ?? '').split('\n').filter((line) => line.startsWith('| '));
  return rows.slice(2).map((row) => row.slice(2, -2).split(' | ')[index] ?? '');
}

describe('facts in the documents', () => {
  it('the table of errors → lists every class that callers can get', () => {
    const told = readColumn(readDocument('docs/troubleshooting.md'), 'Error classes', 0).join();
    const names = Object.keys(main).filter((name) => /^[A-Z].*Error$/.test(name));
    const parents = ['TrackingError', 'ApiError'];
    expect(names.filter((name) => !parents.includes(name) && !told.includes(`\`${name}\``))).toEqual([]);
  });

  it('the table of retries → lists every retry class', () => {
    const told = readColumn(readDocument('docs/retries.md'), 'Retry classes', 0);
    const classes = new Set(ENDPOINT_NAMES.map((name) => `\`${endpoints[name].retryClass}\``));
    expect(new Set(told)).toEqual(classes);
  });

  it('the table of responses to webhooks → lists every status', () => {
    const told = readColumn(readDocument('docs/webhooks.md'), 'Responses', 1).map((cell) =>
      Number(cell.slice(0, 3)),
    );
    expect(new Set(told)).toEqual(new Set(WEBHOOK_STATUSES));
  });

  it('the table of imports → lists every entry point of the package', () => {
    const paths = Object.keys(exports).filter((path) => path !== './package.json');
    const names = paths.map((path) => `\`${path.replace('.', 'tracking-client')}\``);
    expect(readColumn(readDocument('docs/options.md'), 'Imports', 0)).toEqual(names);
  });

  it('the table of words for customers → each milestone with the text of `describeMilestone`', () => {
    const page = readDocument('docs/how-the-service-works.md');
    const [milestones, words] = [0, 1].map((column) =>
      readColumn(page, 'Which word do I show a customer?', column),
    );
    expect(milestones).toEqual(STATUS_MILESTONES.map((milestone) => `\`${milestone}\``));
    expect(words).toEqual(STATUS_MILESTONES.map((milestone) => describeMilestone(milestone)));
  });

  it('the sample numbers → the page on testing names one for each milestone, and the quota', () => {
    const milestones = STATUS_MILESTONES.map((milestone) => milestone.toUpperCase());
    const testing = readDocument('docs/testing.md');
    const names = testing.replace('`SHIP24_SAMPLE_DELIVERED_000`', '`DELIVERED`');
    expect(milestones.filter((name) => !names.includes(`\`${name}\``))).toEqual([]);
    for (const text of [testing, readDocument('README.md')]) expect(text).toMatch(/quota\s+of\s+your\s+plan/);
  });

  it('a published package → installed from npm', () => {
    expect(installSteps(true)).toBe('```sh\nnpm install tracking-client\n```');
  });

  it('a package that is not published → upgraded from the clone, and no place to ask is named', () => {
    const steps = upgradeSteps(false);
    expect(steps).toContain('git pull');
    expect(`${steps}${reportSteps(false)}`).not.toContain('https:');
  });

  it.each([
    'github:someone/parcels.js',
    'https://github.com/someone/parcels.js',
    { type: 'git', url: 'git+https://github.com/someone/parcels.js.git' },
  ])('a published package with the repository %j → its address in each step', (repository) => {
    expect(upgradeSteps(true, repository)).toContain('<https://github.com/someone/parcels.js/issues>');
    expect(reportSteps(true, repository)).toContain(
      '<https://github.com/someone/parcels.js/security/advisories/new>',
    );
  });

  it.each([undefined, 'https://example.com/someone/parcels'])(
    'a published package with the repository %j → an error that names the field',
    (repository) => {
      expect(() => upgradeSteps(true, repository)).toThrow('`repository` in package.json');
    },
  );

  it('the section Install → names every dependency', () => {
    const [, rest = ''] = readDocument('README.md').split('\n## Install\n');
    const [install] = rest.split('\n## ');
    for (const name of Object.keys(dependencies)) expect(install).toContain(`\`${name}\``);
  });
});
