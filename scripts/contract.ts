// Compares an OpenAPI file of the service with the endpoint table and the schemas of this package, and prints the differences.
// Exit code 1: the service has something new or changed. Exit code 2: the file cannot be compared.
// Run: npm run contract -- openapi.yaml
import { compileErrors, dereference, validate } from '@readme/openapi-parser';
import Table from 'cli-table3';
import { compareContract, type Difference } from './support/contract.ts';

const MAX_PLACES = 3;

/** Ends the program with a message. */
function refuse(message: string): never {
  console.error(message);
  process.exit(2);
}

/** Reads a file with its references. A file that breaks a rule of OpenAPI is still compared, because most of it is usable. */
async function readDocument(path: string): Promise<unknown> {
  const document = await dereference(path).catch((error: Error) =>
    refuse(`Could not read ${path}: ${error.message}`),
  );
  const version = 'openapi' in document ? document.openapi : 'none';
  if (!version.startsWith('3.')) refuse(`Expected ${path} to be a file of OpenAPI 3, got version ${version}`);
  const result = await validate(path);
  if (!result.valid) console.error(`${path} breaks rules of OpenAPI:\n${compileErrors(result)}\n`);
  return document;
}

/** Builds one row for equal differences, because many endpoints have the same records. */
function toRows(differences: readonly Difference[]): string[][] {
  const groups = new Map<string, Difference[]>();
  for (const difference of differences) {
    const { where: _, ...facts } = difference;
    const key = JSON.stringify(facts);
    groups.set(key, [...(groups.get(key) ?? []), difference]);
  }
  return [...groups.values()].flatMap((group) => {
    const places = group.map(({ where }) => where);
    const more = places.length > MAX_PLACES ? [`and ${places.length - MAX_PLACES} more`] : [];
    const where = [...places.slice(0, MAX_PLACES), ...more].join('\n');
    return group.slice(0, 1).map(({ change, what, ours, service }) => [change, what, where, ours, service]);
  });
}

const [path, ...others] = process.argv.slice(2);
if (path === undefined || path.startsWith('-') || others.length > 0)
  refuse('Expected one OpenAPI file, as in: npm run contract -- openapi.yaml');
const differences = compareContract(await readDocument(path));
const table = new Table({
  head: ['Change', 'What', 'Where', 'Ours', 'Service'],
  style: { head: [], border: [], compact: true },
});
const order = ['new', 'changed', 'missing'];
table.push(...toRows(differences).sort(([a = ''], [b = '']) => order.indexOf(a) - order.indexOf(b)));
if (differences.length > 0) console.log(table.toString());
const count = (change: Difference['change']) =>
  toRows(differences.filter((each) => each.change === change)).length;
console.log(`${count('new')} new, ${count('changed')} changed, ${count('missing')} missing`);
process.exitCode = count('new') + count('changed') > 0 ? 1 : 0;
