import type { ValidationIssue } from './validation.ts';
export interface StandardSchema<Output = unknown> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined;
  };
}
type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | {
      readonly issues: readonly {
        readonly message: string;
        readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
      }[];
    };
export type StandardSchemaOutput<Schema extends StandardSchema> = NonNullable<
  Schema['~standard']['types']
>['output'];
export function isStandardSchema(value: unknown): value is StandardSchema {
  return typeof Object(Object(value)['~standard']).validate === 'function';
}
export async function validateWithStandardSchema<Output>(
  schema: StandardSchema<Output>,
  value: unknown,
): Promise<{ readonly value: Output } | { readonly issues: ValidationIssue[] }> {
  const result = await schema['~standard'].validate(value);
  if (result.issues === undefined) return { value: result.value };
  return {
    issues: result.issues.map(({ message, path = [] }) => ({
      message,
      code: 'custom',
      path: path
        .map((s) => (typeof s === 'object' ? s.key : s))
        .map((k) => (typeof k === 'number' ? k : String(k))),
    })),
  };
}
