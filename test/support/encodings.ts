const NAMES: Readonly<Record<string, string>> = { '&': 'amp', '+': 'plus', '/': 'sol', '=': 'equals' };
const code = (character: string) => character.charCodeAt(0);
const hex = (character: string) => code(character).toString(16).padStart(2, '0');
const each = (encode: (character: string) => string) => (text: string) => Array.from(text, encode).join('');
const special = (encode: (character: string) => string) => (text: string) => text.replace(/\W/g, encode);

const percent = encodeURIComponent;
const json = (text: string) => JSON.stringify(text).slice(1, -1);
const slashes = (text: string) => json(text).replaceAll('/', '\\/');
const html = (text: string) => text.replaceAll('&', '&amp;');
const unicode = special((character) => `\\u00${hex(character)}`);

/** The ways in which a server can write a text. */
export const ENCODINGS: Readonly<Record<string, (text: string) => string>> = {
  plain: (text) => text,
  'percent-encoded': percent,
  'percent-encoded in lower case': special((character) => `%${hex(character)}`),
  'percent-encoded, every character': each((character) => `%${hex(character).toUpperCase()}`),
  'twice percent-encoded': (text) => percent(percent(text)),
  'three times percent-encoded': (text) => percent(percent(percent(text))),
  JSON: json,
  'JSON with escaped slashes': slashes,
  'JSON with \\u': unicode,
  'JSON with \\u in upper case': special((character) => `\\u00${hex(character).toUpperCase()}`),
  'JSON with \\u, every character': each((character) => `\\u00${hex(character)}`),
  'JSON in JSON with escaped slashes': (text) => json(slashes(text)),
  'JSON in JSON with \\u': (text) => json(unicode(text)),
  'JSON in JSON in JSON with escaped slashes': (text) => json(json(slashes(text))),
  HTML: html,
  'HTML with names': special((character) => (NAMES[character] ? `&${NAMES[character]};` : character)),
  'HTML with decimal numbers': special((character) => `&#${code(character)};`),
  'HTML with hexadecimal numbers': special((character) => `&#x${hex(character).toUpperCase()};`),
  'HTML with leading zeros': special((character) => `&#x00${hex(character)};`),
  'HTML with numbers, every character': each((character) => `&#${code(character)};`),
  'HTML in HTML': (text) => html(html(text)),
  'HTML in JSON with \\u': (text) => unicode(html(text)),
  'HTML in JSON with escaped slashes': (text) => slashes(html(text)),
  'HTML, percent-encoded': (text) => percent(html(text)),
  'percent-encoded in HTML': (text) => html(percent(text)).replaceAll('%', '&#37;'),
  'JSON, percent-encoded': (text) => percent(slashes(text)),
  'percent-encoded in JSON with \\u': (text) => unicode(percent(text)),
};

/** Decodes a text until nothing changes, as a reader of a log could. */
export function decodeAll(text: string): string {
  const fromHex = (_: string, digits: string) => String.fromCharCode(Number.parseInt(digits, 16));
  const decoded = text
    .replace(/%([\da-f]{2})/gi, fromHex)
    .replace(/\\u([\da-f]{4})/gi, fromHex)
    .replace(/&#x0*([\da-f]{1,4});/gi, fromHex)
    .replace(/&#(\d{1,5});/g, (_, decimal: string) => String.fromCharCode(Number(decimal)))
    .replace(/\\(["'\\/])/g, '$1')
    .replace(/&(amp|plus|sol|equals);/g, (entity, name: string) => {
      const [character = entity] = Object.entries(NAMES).find(([, known]) => known === name) ?? [];
      return character;
    });
  return decoded === text ? text : decodeAll(decoded);
}
