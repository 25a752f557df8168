import { describe, expect, it } from 'vitest';
import { ENDPOINT_NAMES, endpoints } from '../../src/endpoints.ts';
import * as main from '../../src/index.ts';
import { answerWith, type WebhookAnswer } from '../../src/webhooks/answers.ts';
import { readDocument } from './support/documents.ts';

const readme = readDocument('README.md');
// Written by npm itself.
const { dependencies, exports } = JSON.parse(readDocument('package.json')) as {
  dependencies: Record<string, string>;
  exports: Record<string, unknown>;
};

// Typed against the answers, so one without an entry here does not compile.
const ANSWERS = Object.keys({
  alive: true,
  done: true,
  invalid_body: true,
  unauthorized: true,
  method_not_allowed: true,
  body_too_long: true,
  unsupported_media_type: true,
  rejected: true,
  failed: true,
  busy: true,
  interrupted: true,
  closing: true,
  unavailable: true,
  deadline: true,
} satisfies Record<WebhookAnswer, true>);

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
    // Sound: the keys of the object above.
    const statuses = ANSWERS.map((answer) => answerWith(answer as WebhookAnswer).status);
    const told = column(readDocument('docs/webhooks.md'), 'Responses', 1).map((cell) =>
      Number(cell.slice(0, 3)),
    );
    expect(new Set(told)).toEqual(new Set(statuses));
  });

  it('imports → every entry point of the package', () => {
    const paths = Object.keys(exports).filter((path) => path !== './package.json');
    const names = paths.map((path) => `\`${path.replace('.', 'tracking-client')}\``);
    expect(column(readme, 'Install', 0)).toEqual(names);
  });

  it('packages it brings along → all of them', () => {
    const [install = ''] = readme.split('\n## Quickstart\n');
    for (const name of Object.keys(dependencies)) expect(install).toContain(`\`${name}\``);
  });
});
