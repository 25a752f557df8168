import ts from 'typescript';
import { ENDPOINT_NAMES, type EndpointName, endpoints } from '../../src/endpoints.ts';
import { code, markdownTable } from '../support/markdown-table.ts';
import { parseSource } from './source-file.ts';

const HEAD = [
  'Method of the client',
  'Endpoint',
  'Per second',
  'Timeout',
  'Retries',
  'Resolves to',
  'What it does',
];

/** Every endpoint of the table, as the README shows it. */
export function endpointTable(): string {
  const rows = ENDPOINT_NAMES.map((name) => {
    const { method, path, limitPerSecond, timeoutClass, retryClass, summary } = endpoints[name];
    const facts = [`${limitPerSecond}`, timeoutClass, retryClass, code(resultOf(name)), summary];
    return [code(name), code(`${method} ${path}`), ...facts];
  });
  return markdownTable(HEAD, rows);
}

/**
 * What the client's method of an endpoint resolves to.
 *
 * @throws Error when the method's declared type does not tell
 */
function resultOf(endpoint: EndpointName): string {
  const [resource, method] = endpoint.split('.');
  const path = resource === 'trackers' ? 'src/trackers/trackers.ts' : 'src/trackers/lookups.ts';
  const declaration = parseSource(path)
    .statements.filter(ts.isClassDeclaration)
    .flatMap(({ members }) => members.filter(ts.isMethodDeclaration))
    .find(({ name }) => name.getText() === method);
  const type = declaration?.type;
  const isPromise = type && ts.isTypeReferenceNode(type) && type.typeName.getText() === 'ApiPromise';
  const result = isPromise ? type.typeArguments?.[0] : undefined;
  if (result === undefined) {
    throw new Error(`Expected \`${endpoint}\` in ${path} to return an ApiPromise, got ${type?.getText()}`);
  }
  return result.getText();
}
