import * as main from 'tracking-client';
import { describe, expect, it } from 'vitest';
import { ENDPOINT_NAMES, endpoints } from '../../src/endpoints.ts';
import { readDocument } from './support/documents.ts';

const readme = readDocument('README.md');
// Written by npm itself.
const { dependencies, exports } = JSON.parse(readDocument('package.json')) as {
  dependencies: Record<string, string>;
  exports: Record<string, unknown>;
};

/** Those that the tests of the handler provoke. */
const WEBHOOK_STATUSES = [200, 400, 401, 405, 413, 415, 422, 500, 503];

/** The cells of one column of the tables in a section, heads and lines left out. */
function column(text: string, heading: string, index: number): string[] {
  const [, section = ''] = text.split(`\n## ${heading}\n`);
  const rows = (section.split('\n## ')[0] ?? '').split('\n').filter((line) => line.startsWith('| '));
  return rows.slice(2).map((row) => row.slice(2, -2).split(' | ')[index] ?? '');
}

describe('what users read about', () => {
  it('errors → every class that callers can meet', () => {
    const told = column(readDocument('docs/troubleshooting.md'), 'Error classes', 0).join();
    const names = Object.keys(main).filter((name) => /^[A-Z].*Error$/.test(name));
    const parents = ['TrackingError', 'ApiError'];
    expect(names.filter((name) => !parents.includes(name) && !told.includes(`\`${name}\``))).toEqual([]);
  });

  it('retries → every retry class', () => {
    const told = column(readDocument('docs/limits-and-retries.md'), 'What is repeated', 0);
    const classes = new Set(ENDPOINT_NAMES.map((name) => `\`${endpoints[name].retryClass}\``));
    expect(new Set(told)).toEqual(classes);
  });

  it('responses to webhooks → every status', () => {
    const told = column(readDocument('docs/webhooks.md'), 'Responses', 1).map((cell) =>
      Number(cell.slice(0, 3)),
    );
    expect(new Set(told)).toEqual(new Set(WEBHOOK_STATUSES));
  });

  it('imports → every entry point of the package', () => {
    const paths = Object.keys(exports).filter((path) => path !== './package.json');
    const names = paths.map((path) => `\`${path.replace('.', 'tracking-client')}\``);
    expect(column(readme, 'Install', 0)).toEqual(names);
  });

  it('packages it brings along → all of them', () => {
    const [, section = ''] = readme.split('\n## Install\n');
    const [install = ''] = section.split('\n## ');
    for (const name of Object.keys(dependencies)) expect(install).toContain(`\`${name}\``);
  });
});
