// The comment of an option states its default for the editor and for docs/options.md, and its schema sets it.
import { readdirSync } from 'node:fs';
import ts from 'typescript';
import { expect, it } from 'vitest';
import { BULK_RETRY } from '../../src/bulk/create-many.ts';
import { BACKGROUND_RETRY, resolveCallOptions } from '../../src/config/call-options.ts';
import { readDocument } from './support/documents.ts';

const ROOT = new URL('../../', import.meta.url);
const FOLDERS = [
  'bulk',
  'common',
  'config',
  'couriers',
  'limiter',
  'polling',
  'postgres',
  'redis',
  'schemas',
  'webhooks',
];
const SOURCES = FOLDERS.flatMap((folder) =>
  readdirSync(new URL(`src/${folder}/`, ROOT)).flatMap((name) =>
    name.endsWith('.ts')
      ? ts.createSourceFile(name, readDocument(`src/${folder}/${name}`), ts.ScriptTarget.Latest)
      : [],
  ),
);
/** The page lists the options of these types below another name. */
const SHOWN_AS: Readonly<Record<string, string>> = {
  HandlerOptions: 'WebhookHandlerOptions',
  WebhookInboxOptions: 'InboxOptions',
};

function findAll<Node extends ts.Node>(root: ts.Node, is: (node: ts.Node) => node is Node): Node[] {
  const found = is(root) ? [root] : [];
  root.forEachChild((child) => void found.push(...findAll(child, is)));
  return found;
}

interface Constant {
  readonly value: ts.Expression;
  readonly source: ts.SourceFile;
}
const constants = new Map<string, Constant>(
  SOURCES.flatMap((source) =>
    findAll(source, ts.isVariableDeclaration).flatMap(({ name, initializer }) =>
      initializer === undefined ? [] : [[name.getText(source), { value: initializer, source }] as const],
    ),
  ),
);

/** Computes a value from literals, products and constants; undefined if it is something else, such as a function. */
function evaluate(node: ts.Expression | undefined, source: ts.SourceFile): string | number | undefined {
  if (node === undefined) return undefined;
  if (ts.isNumericLiteral(node)) return Number(node.text);
  if (ts.isStringLiteral(node)) return `\`${node.text}\``;
  if (/^(?:true|false)$/.test(node.getText(source))) return node.getText(source);
  if (ts.isIdentifier(node)) {
    const constant = constants.get(node.text);
    return constant && evaluate(constant.value, constant.source);
  }
  if (!ts.isBinaryExpression(node)) return undefined;
  const [left, right] = [evaluate(node.left, source), evaluate(node.right, source)];
  if (typeof left !== 'number' || typeof right !== 'number') return undefined;
  return node.operatorToken.kind === ts.SyntaxKind.AsteriskAsteriskToken ? left ** right : left * right;
}

/** The defaults that schemas set: each schema is an object that `satisfies OptionShape<TheOptions>`. */
const defaults = SOURCES.flatMap((source) =>
  findAll(source, ts.isSatisfiesExpression).flatMap(({ expression, type }) => {
    const [, options] = /^OptionShape<\W*(?:Omit<|Pick<)?(\w+)/.exec(type.getText(source)) ?? [];
    if (options === undefined || !ts.isObjectLiteralExpression(expression)) return [];
    return expression.properties.filter(ts.isPropertyAssignment).flatMap(({ name, initializer }) => {
      const isDefault =
        ts.isCallExpression(initializer) && /\.default$/.test(initializer.expression.getText(source));
      const value = isDefault ? evaluate(initializer.arguments[0], source) : undefined;
      return value === undefined
        ? []
        : [[SHOWN_AS[options] ?? options, name.getText(source), value] as const];
    });
  }),
);

/** The defaults that the page states, by the name of the options and of the option. */
function readStated(): Map<string, string> {
  const stated = new Map<string, string>();
  let options = '';
  for (const [, first = '', second = ''] of readDocument('docs/options.md').matchAll(
    /^\| (.+?) \| (.*?) \|/gm,
  )) {
    options = /^\*\*`(\w+)`\*\*/.exec(first)?.[1] ?? options;
    stated.set(`${options}.${first.replaceAll('`', '')}`, second);
  }
  return stated;
}

const DAY_MS = 86_400_000;
const stated = readStated();

it.each(defaults)('%s.%s → the default of the page is that of the schema: %s', (options, name, value) => {
  const text = stated.get(`${options}.${name}`) ?? 'no such row';
  const forms =
    typeof value === 'number' ? [value.toLocaleString('en-US'), `${value / DAY_MS} days`] : [value];
  expect(forms).toContain(/^(?:[\d,]+(?: days)?|`[^`]*`|true|false)/.exec(text)?.[0] ?? text);
});

it('most schemas of options → at least one default found', () => {
  expect(new Set(defaults.map(([options]) => options)).size).toBeGreaterThanOrEqual(12);
});

it('the defaults of retries → those of the code, also for `createMany` and polls', () => {
  const { retry } = resolveCallOptions(
    { maskKey: String, totalTimeoutMs: undefined, retry: {} },
    'trackers.get',
    {},
  );
  const format = (value: number) => value.toLocaleString('en-US');
  expect(
    ['retries', 'maxRetryAfterMs', 'maxBackoffMs'].map((name) => stated.get(`RetryOptions.${name}`)),
  ).toEqual([
    `${retry.retries}; ${BULK_RETRY.retries} for \`createMany\``,
    `${format(retry.maxRetryAfterMs)}; ${format(BACKGROUND_RETRY.maxRetryAfterMs)} for \`createMany\` and for a poll after a 429`,
    format(retry.maxBackoffMs),
  ]);
  expect([BACKGROUND_RETRY.retries, BULK_RETRY.maxRetryAfterMs]).toEqual([
    retry.retries,
    BACKGROUND_RETRY.maxRetryAfterMs,
  ]);
});
