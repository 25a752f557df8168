import { parseMarkdown, readDocument } from './documents.ts';

/** The rules for Prometheus in docs/logging.md, as YAML. */
export function readAlertRules(): string {
  const { blocks } = parseMarkdown(readDocument('docs/logging.md'));
  const rules = blocks.find(({ language }) => language === 'yaml');
  if (rules === undefined) throw new Error('Expected rules in docs/logging.md, got none');
  return rules.code;
}
