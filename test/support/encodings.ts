/** The ways in which a server may write a key, and in which the key is masked. */
export const ENCODINGS: Readonly<Record<string, (text: string) => string>> = {
  plain: (text) => text,
  'percent-encoded': encodeURIComponent,
  'percent-encoded in lower case': (text) =>
    text.replace(/\W/g, (character) => `%${character.charCodeAt(0).toString(16)}`),
  JSON: (text) => JSON.stringify(text).slice(1, -1),
  'JSON with escaped slashes': (text) => text.replaceAll('/', '\\/'),
};

/** Decodes a text as a reader of a log could. */
export function decodeAll(text: string): string {
  const fromHex = (_: string, digits: string) => String.fromCharCode(Number.parseInt(digits, 16));
  return text.replace(/%([\da-f]{2})/gi, fromHex).replace(/\\(["'\\/])/g, '$1');
}
