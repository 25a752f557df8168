// Compares an OpenAPI document of the service with the endpoint table and the schemas of this package.
import * as z from 'zod';
import { isJsonObject } from '../../src/common/parsing.ts';
import { ENDPOINT_NAMES, type Endpoint, endpoints } from '../../src/endpoints.ts';
import { apiErrorItemSchema } from '../../src/schemas/api-error.ts';
import { eventsMessageSchema, proofOfDeliverySchema } from '../../src/schemas/webhook.ts';
import { readShape, type Shape, toJsonSchema } from './shape.ts';

/** A difference. `new`: only the document has it. `missing`: only this package has it. */
export interface Difference {
  readonly change: 'new' | 'missing' | 'changed';
  /** The name of the difference, such as `field name` or `maxLength of name`. */
  readonly what: string;
  /** The endpoint, and the part of it with the path to the field. */
  readonly where: string;
  readonly ours: string;
  readonly service: string;
}

const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace'];
/** OpenAPI ignores header parameters with these names. */
const IGNORED_HEADERS = ['accept', 'authorization', 'content-type'];
/** Intended differences. */
const INTENDED: readonly (readonly [field: RegExp, rule: string])[] = [
  // Lower case is accepted and sent in upper case (docs/service.md 3.4).
  [/CountryCode$/, 'pattern'],
];

type Json = Readonly<Record<string, unknown>>;
const asObject = (value: unknown): Json => (isJsonObject(value) ? value : {});
const asList = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const shapeOf = (schema: z.core.$ZodType): Shape | undefined => readShape(toJsonSchema(schema));
/** The name of a field by its path. */
const lastName = (where: string) => where.split(/[ .]/).at(-1) ?? where;

function compareRules(where: string, ours: Shape, service: Shape): Difference[] {
  const names = new Set([...Object.keys(ours.rules), ...Object.keys(service.rules)]);
  return [...names].flatMap((name) => {
    const rule = name as keyof Shape['rules']; // Both objects have only rules.
    const [here, there] = [ours.rules[rule], service.rules[rule]];
    if (here === there || INTENDED.some(([field, intended]) => field.test(where) && intended === rule))
      return [];
    const change = here === undefined ? 'new' : there === undefined ? 'missing' : 'changed';
    return [{ change, what: `${rule} of ${lastName(where)}`, where, ours: here ?? '', service: there ?? '' }];
  });
}

function compareValues(where: string, ours: Shape, service: Shape): Difference[] {
  // Without a list in the document, every value is legal.
  if (service.values.size === 0 || ours.kind === 'any') return [];
  const what = `values of ${lastName(where)}`;
  const added = [...service.values].filter((value) => !ours.values.has(value)).join(', ');
  const gone = [...ours.values].filter((value) => !service.values.has(value)).join(', ');
  return [
    ...(added === '' ? [] : [{ change: 'new', what, where, ours: '', service: added } as const]),
    ...(gone === '' ? [] : [{ change: 'missing', what, where, ours: gone, service: '' } as const]),
  ];
}

function compareShapes(where: string, ours: Shape | undefined, service: Shape | undefined): Difference[] {
  if (ours === undefined || service === undefined) return [];
  const differences = [...compareRules(where, ours, service), ...compareValues(where, ours, service)];
  if (ours.kind === 'any' || service.kind === 'any') return differences;
  if (ours.kind !== service.kind) {
    const kinds = { ours: ours.kind, service: service.kind };
    return [...differences, { change: 'changed', what: `kind of ${lastName(where)}`, where, ...kinds }];
  }
  for (const name of new Set([...ours.fields.keys(), ...service.fields.keys()])) {
    const [here, there] = [ours.fields.get(name), service.fields.get(name)];
    if (here !== undefined && there !== undefined)
      differences.push(...compareShapes(`${where}.${name}`, here, there));
    else {
      const change = here === undefined ? 'new' : 'missing';
      const kinds = { ours: here?.kind ?? '', service: there?.kind ?? '' };
      differences.push({ change, what: `field ${name}`, where, ...kinds });
    }
  }
  return [...differences, ...compareShapes(`${where}[]`, ours.items, service.items)];
}

/**
 * Takes the payload out of a body. The `unwrap` of the endpoint reads values, so it gets a sample of the body.
 *
 * @returns the shape of the payload, or what the body lacks
 */
function unwrapShape(body: Shape, unwrap: Endpoint['response']['unwrap']) {
  const shapes = new Map<unknown, Shape>();
  const toSample = (shape: Shape): unknown => {
    const fields = [...shape.fields].map(([name, field]) => [name, toSample(field)]);
    const items = shape.items === undefined ? [] : [toSample(shape.items)];
    const samples = { object: Object.fromEntries(fields), array: items, value: `${shapes.size}`, any: {} };
    shapes.set(samples[shape.kind], shape);
    return samples[shape.kind];
  };
  const unwrapped = unwrap(toSample(body));
  return 'missing' in unwrapped ? unwrapped : { payload: shapes.get(unwrapped.payload) };
}

/** Joins the JSON bodies of some responses, or of one request. */
function readBodies(holders: readonly unknown[]): Shape | undefined {
  const schemas = holders.flatMap((holder) =>
    Object.entries(asObject(asObject(holder)['content']))
      .filter(([type]) => /\bjson\b/.test(type))
      .map(([, media]) => asObject(media)['schema']),
  );
  return schemas.length === 0 ? undefined : readShape({ anyOf: schemas });
}

interface Operation {
  readonly method: string;
  /** Path below the version. */
  readonly path: string;
  readonly parameters: readonly Json[];
  readonly body: Shape | undefined;
  readonly responses: Json;
}

function readOperations(document: Json): Operation[] {
  return Object.entries(asObject(document['paths'])).flatMap(([fullPath, item]) => {
    const path = fullPath.replace(/^.*\/v\d+(?=\/)/, '');
    const shared = asList(asObject(item)['parameters']);
    return METHODS.filter((method) => isJsonObject(asObject(item)[method])).map((method) => {
      const operation = asObject(asObject(item)[method]);
      return {
        method: method.toUpperCase(),
        path,
        parameters: [...shared, ...asList(operation['parameters'])].map(asObject),
        body: readBodies([operation['requestBody']]),
        responses: asObject(operation['responses']),
      };
    });
  });
}

function compareParameters(where: string, row: Endpoint, parameters: readonly Json[]): Difference[] {
  const toShape = (place: string) =>
    readShape({
      properties: Object.fromEntries(
        parameters
          .filter((parameter) => parameter['in'] === place)
          .filter(({ name }) => place !== 'header' || !IGNORED_HEADERS.includes(String(name).toLowerCase()))
          .map((parameter) => [parameter['name'], parameter['schema'] ?? {}]),
      ),
    });
  const none = z.object({});
  const { query = none, params = none } = row.request;
  const ours = { query, path: params, header: none, cookie: none };
  return Object.entries(ours).flatMap(([place, schema]) =>
    compareShapes(`${where} ${place}`, shapeOf(schema), toShape(place)),
  );
}

function compareResponses(where: string, row: Endpoint, responses: Json): Difference[] {
  const { resultStatuses = [], unwrap, schema } = row.response;
  const isResult = (status: string) => status.startsWith('2') || resultStatuses.includes(Number(status));
  const all = Object.entries(responses);
  const result = readBodies(all.filter(([status]) => isResult(status)).map(([, response]) => response));
  const failure = readBodies(all.filter(([status]) => !isResult(status)).map(([, response]) => response));
  const error = failure?.fields.get('errors')?.items ?? failure?.fields.get('error');
  const ofError = compareShapes(`${where} error`, shapeOf(apiErrorItemSchema), error);
  if (result === undefined) return ofError;
  const unwrapped = unwrapShape(result, unwrap);
  if (!('missing' in unwrapped))
    return [...compareShapes(`${where} response`, shapeOf(schema), unwrapped.payload), ...ofError];
  return [{ change: 'changed', what: 'response', where, ours: unwrapped.missing, service: '' }, ...ofError];
}

function compareWebhooks(document: Json): Difference[] {
  const message = z.union([
    eventsMessageSchema.omit({ kind: true }),
    proofOfDeliverySchema.omit({ kind: true }),
  ]);
  const ours = shapeOf(z.object({ trackings: z.array(message) }));
  return Object.entries(asObject(document['webhooks'])).flatMap(([name, item]) =>
    compareShapes(`webhook ${name}`, ours, readBodies([asObject(asObject(item)['post'])['requestBody']])),
  );
}

/** Renames the parameters in a path, because services may change these names freely. */
const withoutNames = (path: string) => path.replaceAll(/\{\w+\}/g, '{}');

function withOurNames(operation: Operation, ourPath: string): readonly Json[] {
  const readNames = (path: string): string[] => path.match(/(?<=\{)\w+(?=\})/g) ?? [];
  const [theirs, ours] = [readNames(operation.path), readNames(ourPath)];
  return operation.parameters.map((parameter) => {
    const index = theirs.indexOf(String(parameter['name']));
    return parameter['in'] === 'path' ? { ...parameter, name: ours[index] } : parameter;
  });
}

/**
 * Lists the differences between the service and this package.
 *
 * @param document - an OpenAPI document whose references are resolved
 */
export function compareContract(document: unknown): Difference[] {
  const operations = readOperations(asObject(document));
  const known = new Set<Operation>();
  const differences: Difference[] = [];
  for (const name of ENDPOINT_NAMES) {
    const row: Endpoint = endpoints[name];
    const where = `${row.method} ${row.path}`;
    const operation = operations.find(
      ({ method, path }) => method === row.method && withoutNames(path) === withoutNames(row.path),
    );
    if (operation === undefined) {
      differences.push({ change: 'missing', what: 'endpoint', where, ours: name, service: '' });
      continue;
    }
    known.add(operation);
    const body = row.request.body && shapeOf(row.request.body);
    differences.push(
      ...compareParameters(where, row, withOurNames(operation, row.path)),
      ...compareShapes(`${where} body`, body, operation.body),
      ...compareResponses(where, row, operation.responses),
    );
    if (body === undefined && operation.body !== undefined)
      differences.push({ change: 'new', what: 'body', where, ours: '', service: operation.body.kind });
  }
  for (const operation of operations.filter((each) => !known.has(each))) {
    const where = `${operation.method} ${operation.path}`;
    differences.push({ change: 'new', what: 'endpoint', where, ours: '', service: where });
  }
  return [...differences, ...compareWebhooks(asObject(document))];
}
