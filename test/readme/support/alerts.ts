import { readDocument } from './documents.ts';

/** The rules for Prometheus that docs/logging.md links, as YAML. */
export const readAlertRules = (): string => readDocument('docs/alerts.yml');
