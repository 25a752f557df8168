import { isJsonObject } from '../common/parsing.ts';

/** Marks a response that is well-formed and contains no results yet. */
export const NO_RESULTS_YET = Symbol('no results yet');

/** Takes the payload out of a response body, or names what the body lacks. */
export type Unwrap = (body: unknown) => { readonly payload: unknown } | { readonly missing: string };

/** Reads `data.<key>`, or `data` itself if it has no such key (docs/service.md 2.10). */
export function inData(key: string): Unwrap {
  return (body) => {
    if (!isJsonObject(body) || !Object.hasOwn(body, 'data')) return { missing: '`data`' };
    const { data } = body;
    return { payload: isJsonObject(data) && Object.hasOwn(data, key) ? data[key] : data };
  };
}

/** Reads a single record from `data.<key>` or `data`, or takes the whole body if it has the record's id. */
export function recordInData(key: string, idField: string): Unwrap {
  const unwrapData = inData(key);
  return (body) => {
    const isRecord = isJsonObject(body) && !Object.hasOwn(body, 'data') && Object.hasOwn(body, idField);
    return isRecord ? { payload: body } : unwrapData(body);
  };
}

/**
 * Reads the first item of the list in `data.<key>` or `data`, or a single record there. An empty list means no results yet
 * (docs/service.md 2.11).
 *
 * @param recordFields - a single record has at least one of these fields; without this rule, any object would pass as an empty
 * record
 */
export function firstInData(key: string, recordFields: readonly string[]): Unwrap {
  const unwrapList = inData(key);
  return (body) => {
    const list = unwrapList(body);
    if ('missing' in list) return list;
    const { payload } = list;
    if (Array.isArray(payload)) return { payload: payload.length === 0 ? NO_RESULTS_YET : payload[0] };
    const isOtherKind = isJsonObject(payload) && !recordFields.some((field) => Object.hasOwn(payload, field));
    if (!isOtherKind) return list;
    const fields = [key, ...recordFields].map((field) => `\`data.${field}\``);
    return { missing: `${fields.slice(0, -1).join(', ')} or ${fields.at(-1)}` };
  };
}

/** Takes the body as it is. */
export const wholeBody: Unwrap = (body) => ({ payload: body });

/** Takes the body of the bulk endpoint as it is, if it has a status or a list of items. */
export const bulkBody: Unwrap = (body) => {
  const isBulk = isJsonObject(body) && (typeof body['status'] === 'string' || Array.isArray(body['data']));
  return isBulk ? { payload: body } : { missing: '`status` or `data[]`' };
};

/** Reads `data.summary` of a resend. A missing summary counts as empty, because the status is enough (docs/service.md 8.12). */
export const resendSummary: Unwrap = (body) => {
  const data = isJsonObject(body) ? body['data'] : undefined;
  const summary = isJsonObject(data) ? data['summary'] : undefined;
  return { payload: isJsonObject(summary) ? summary : {} };
};
