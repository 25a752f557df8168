/**
 * Measures the processor time that it takes to mask the API key in texts of 1, 4 and 16 MiB. If the time grows as the text does, the
 * search is linear. `npx tsx bench/masking.ts` only prints.
 */
import { markdownTable } from '../scripts/support/markdown-table.ts';
import { Secret } from '../src/common/secrets.ts';

const KEY = 'sk-live+0123/456789';
const SIZES_MIB = [1, 4, 16];
const ROUNDS = 5;

const encoded = encodeURIComponent(KEY);
const CASES: readonly (readonly [text: string, key: string, part: string])[] = [
  ['plain words', KEY, 'the order was not found '],
  ['words of a URL', KEY, 'a%20b&c='],
  ['percent signs', KEY, '%25'],
  ['escapes of its characters', KEY, '%2B'],
  ['all of the key but its end', KEY, `${KEY.slice(0, -1)} `],
  ['all of the encoded key but its end', KEY, `${encoded.slice(0, -1)} `],
  ['the letter that the key `aaaaaaaaab` repeats', 'aaaaaaaaab', 'a'],
  ['nothing but the key', KEY, `${KEY} `],
  ['nothing but the encoded key', KEY, `${encoded} `],
];

/** Returns the least processor time of several rounds, in milliseconds. */
function measure(secret: Secret, text: string): number {
  const times = Array.from({ length: ROUNDS }, () => {
    const before = process.cpuUsage();
    secret.mask(text);
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1_000;
  });
  return Math.min(...times);
}

const rows = CASES.map(([name, key, part]) => {
  const secret = new Secret(key);
  const times = SIZES_MIB.map((size) => measure(secret, part.repeat((size * 2 ** 20) / part.length)));
  return [name, ...times.map((time) => `${time.toFixed(1)} ms`)];
});
console.log(markdownTable(['Text full of', ...SIZES_MIB.map((size) => `${size} MiB`)], rows));
