import * as main from 'tracking-client';
import { describe, expect, it } from 'vitest';
import { installSteps } from '../../scripts/readme/install.ts';
import { IS_PUBLISHED } from '../../scripts/support/published.ts';
import { ENDPOINT_NAMES, endpoints } from '../../src/endpoints.ts';
import { STATUS_MILESTONES } from '../../src/events/statuses.ts';
import { parseMarkdown, readDocument } from './support/documents.ts';

const readme = readDocument('README.md');
// npm writes this file, so its shape needs no check.
const { dependencies, exports } = JSON.parse(readDocument('package.json')) as {
  dependencies: Record<string, string>;
  exports: Record<string, unknown>;
};

/** The statuses that the tests of the handler cover. */
const WEBHOOK_STATUSES = [200, 400, 401, 405, 413, 415, 422, 500, 503];

/** The text of a section of the README. */
function readSection(heading: string): string {
  const [, section = ''] = readme.split(`\n## ${heading}\n`);
  return section.split('\n## ')[0] ?? '';
}

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
    const told = readColumn(readDocument('docs/limits-and-retries.md'), 'Retries', 0);
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

  it('the sample numbers → the README and the page on testing name one for each milestone, and the quota', () => {
    const milestones = STATUS_MILESTONES.map((milestone) => milestone.toUpperCase());
    const testing = readDocument('docs/testing.md');
    expect(milestones.filter((name) => !testing.includes(`\`SHIP24_SAMPLE_${name}_000\``))).toEqual([]);
    const [, real = ''] = readSection('Quickstart').split('### With the real service');
    expect(real).toContain('`SHIP24_SAMPLE_DELIVERED_000`');
    expect(milestones.filter((name) => !real.includes(`\`${name}\``))).toEqual([]);
    for (const text of [testing, real]) expect(text).toMatch(/quota of\s+your plan/);
  });

  it('the README → at most 230 lines', () => {
    expect(readme.trimEnd().split('\n').length).toBeLessThanOrEqual(230);
  });

  it('the section below the first paragraph → two commands for a clone: the demo, and the tests', () => {
    const [title, , heading] = readme.split('\n\n');
    expect([title, heading]).toEqual(['# tracking-client', '## Try it']);
    const commands = parseMarkdown(readSection('Try it')).blocks.filter(({ language }) => language === 'sh');
    expect(commands.map(({ code }) => code)).toEqual(['npm ci && npm run demo\nnpm ci && npm test\n']);
  });

  it('a package that is not published → installed from a clone', () => {
    const steps = installSteps(false);
    expect(steps).toContain('npm ci && npm pack');
    expect(steps).not.toContain('npm install tracking-client');
  });

  it('a published package → installed from npm', () => {
    expect(installSteps(true)).toBe('```sh\nnpm install tracking-client\n```');
  });

  it('the section Install → agrees with the constant that says whether the package is published', () => {
    expect(readSection('Install')).toContain(installSteps(IS_PUBLISHED));
    expect(readSection('Install')).not.toContain(installSteps(!IS_PUBLISHED));
  });

  it('the section Install → names every dependency', () => {
    const install = readSection('Install');
    for (const name of Object.keys(dependencies)) expect(install).toContain(`\`${name}\``);
  });
});
