import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { ENDPOINT_NAMES, endpoints } from '../../src/endpoints.ts';
import * as main from '../../src/index.ts';
import { type ResponseKind, respond } from '../../src/webhooks/handler.ts';
import { README, sectionOf } from './support/readme.ts';

const readme = readFileSync(README, 'utf8');
// Written by npm itself.
const { dependencies, exports } = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
) as { dependencies: Record<string, string>; exports: Record<string, unknown> };

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
} satisfies Record<ResponseKind, true>);

/** The cells of one column of the tables in a text, heads and lines left out. */
function column(text: string, index: number): string[] {
  const rows = text.split('\n').filter((line) => line.startsWith('| ') && !line.startsWith('| ---'));
  return rows.map((row) => row.split(' | ')[index] ?? '');
}

describe('what the README says about', () => {
  it('errors → every class that callers can meet', () => {
    const text = sectionOf(readme, 'Errors');
    const names = Object.keys(main).filter((name) => /^[A-Z].*Error$/.test(name));
    expect(names.filter((name) => !text.includes(`\`${name}\``))).toEqual([]);
  });

  it('retries → every retry class', () => {
    const classes = new Set(ENDPOINT_NAMES.map((name) => endpoints[name].retryClass));
    const told = column(sectionOf(readme, 'Limits and retries'), 0);
    for (const retryClass of classes) expect(told).toContain(`| \`${retryClass}\``);
  });

  it('answers to webhooks → every status', () => {
    // Sound: the keys of the object above.
    const statuses = ANSWERS.map((answer) => respond(answer as ResponseKind).status);
    const [, text = ''] = sectionOf(readme, 'Webhooks').split('| Situation | Answer |');
    const told = column(text.split('\n\n')[0] ?? '', 1).flatMap((cell) => /^\d{3}/.exec(cell) ?? []);
    expect(new Set(told.map(Number))).toEqual(new Set(statuses));
  });

  it('imports → every entry point of the package', () => {
    const paths = Object.keys(exports).filter((path) => path !== './package.json');
    const names = paths.map((path) => `| \`${path.replace('.', 'tracking-client')}\``);
    expect(column(sectionOf(readme, 'Install'), 0)).toEqual(['| Import', ...names]);
  });

  it('packages it brings along → all of them', () => {
    const names = Object.keys(dependencies).map((name) => `\`${name}\``);
    expect(sectionOf(readme, 'What you get')).toContain(
      `| Brings along | nothing | little | ${names.join(', ')} |`,
    );
  });
});
