/** Marks a response that is well-formed and holds no results yet. */
export const NO_RESULTS_YET = Symbol('no results yet');

/** Takes the payload out of a response body; or says why it can't, as a rule the reader can check against the body. */
export type Unwrap = (body: unknown) => { readonly payload: unknown } | { readonly mismatch: string };

type JsonObject = Readonly<Record<string, unknown>>;

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Reads `data.<key>`, or `data` itself when the service sends the bare form. */
export function inData(key: string): Unwrap {
  return (body) => {
    if (!isJsonObject(body) || !Object.hasOwn(body, 'data')) return { mismatch: 'an object with `data`' };
    const { data } = body;
    return { payload: isJsonObject(data) && Object.hasOwn(data, key) ? data[key] : data };
  };
}

/**
 * Reads the first item of `data.<key>[]`, or the bare form; an empty array means that there are no results yet.
 *
 * @param recordFields - what a record of the bare form has at least one of, so that an object of another kind is not
 * taken for an empty record
 */
export function firstInData(key: string, recordFields: readonly string[]): Unwrap {
  const unwrapList = inData(key);
  return (body) => {
    const list = unwrapList(body);
    if ('mismatch' in list) return list;
    const { payload } = list;
    if (Array.isArray(payload)) return { payload: payload.length === 0 ? NO_RESULTS_YET : payload[0] };
    const isOtherKind = isJsonObject(payload) && !recordFields.some((field) => Object.hasOwn(payload, field));
    if (!isOtherKind) return list;
    const fields = recordFields.map((field) => `\`${field}\``).join(' or ');
    return { mismatch: `\`data.${key}\`, or \`data\` with ${fields}` };
  };
}

/** Takes the body as it is. */
export const wholeBody: Unwrap = (body) => ({ payload: body });

/** Takes the body of the bulk endpoint as it is: with its status, or with items that say by themselves what became of them. */
export const bulkBody: Unwrap = (body) => {
  const isBulk = isJsonObject(body) && (typeof body['status'] === 'string' || Array.isArray(body['data']));
  return isBulk ? { payload: body } : { mismatch: 'an object with `status` or a list in `data`' };
};

/** Reads a list with how many items were sent: items that are none are left out later, and a full page is still full. */
export function pageOf(key: string): Unwrap {
  const unwrapList = inData(key);
  return (body) => {
    const list = unwrapList(body);
    if ('mismatch' in list) return list;
    const { payload } = list;
    if (!Array.isArray(payload)) return { mismatch: `an array in \`data.${key}\`, or as \`data\`` };
    return { payload: { [key]: payload, sent: payload.length } };
  };
}

/** Reads `data.summary` of a resend; without one it is empty, as the status says that the service has taken it. */
export const resendSummary: Unwrap = (body) => {
  const data = isJsonObject(body) ? body['data'] : undefined;
  const summary = isJsonObject(data) ? data['summary'] : undefined;
  return { payload: isJsonObject(summary) ? summary : {} };
};
