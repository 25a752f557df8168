import { parseMarkdown, readDocument } from './documents.ts';

/** The rules for Prometheus in docs/observability.md, as YAML. */
export function readAlertRules(): string {
  const { blocks } = parseMarkdown(readDocument('docs/observability.md'));
  const rules = blocks.find(({ language }) => language === 'yaml');
  if (rules === undefined) throw new Error('Expected rules in docs/observability.md, got none');
  return rules.code;
}
