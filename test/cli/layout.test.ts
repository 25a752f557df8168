import { stripVTControlCharacters } from 'node:util';
import pc from 'picocolors';
import { createFakeTrackingService } from 'tracking-client/testing';
import { describe, expect, it, vi } from 'vitest';
import { formatTable, wrap } from '../../src/cli/layout.ts';
import { connect, makeTerminal, runLine } from './make-terminal.ts';

const NUMBER = 'RR123456785CN';
const colours = pc.createColors(false);

describe('wrap', () => {
  const text = 'Arrived in the country of destination · SAN FRANCISCO, CA 94101';

  it.each([
    ['a pipe → one line', Number.POSITIVE_INFINITY, [`  12:00  ${text}`]],
    ['enough room → one line', 72, [`  12:00  ${text}`]],
    [
      'less room → lines that begin below each other',
      60,
      ['  12:00  Arrived in the country of destination · SAN', '         FRANCISCO, CA 94101'],
    ],
    [
      'hardly any room beside the start → the text begins on the next line',
      28,
      ['  12:00', '    Arrived in the country', '    of destination · SAN', '    FRANCISCO, CA 94101'],
    ],
  ])('%s', (_, width, lines) => {
    expect(wrap('  12:00  ', text, width).split('\n')).toEqual(lines);
  });

  it('a word that is longer than a line → whole, on a line of its own', () => {
    const url = `https://tracking.example.com/${'x'.repeat(60)}`;
    expect(wrap('  ', `See ${url} now`, 60).split('\n')).toEqual(['  See', `  ${url}`, '  now']);
  });

  it('colours → do not count', () => {
    const { bold } = pc.createColors(true);
    expect(wrap(bold('12:00 '), `${'a '.repeat(10)}${bold('b')}`, 27).split('\n')).toHaveLength(1);
  });
});

describe('formatTable', () => {
  it('a cell of 300,000 characters beside short ones → no line ends with a space', () => {
    const long = 'x'.repeat(300_000);
    const text = formatTable(
      ['A', 'B'],
      [
        [long, ''],
        ['a', 'b'],
      ],
      { width: Number.POSITIVE_INFINITY, colours },
    );
    expect(text.split('\n').map((line) => line.replace(/^x+/, 'x').slice(-2))).toEqual([' B', 'x', ' b']);
  });

  const head = ['Code', 'Name', 'Required fields'];
  const rows = [
    ['us-post', 'USPS', ''],
    ['nl-post', 'PostNL', 'destinationPostCode, destinationCountryCode'],
  ];

  it.each([80, Number.POSITIVE_INFINITY])('%d columns → a table', (width) => {
    expect(formatTable(head, rows, { width, colours }).split('\n')).toEqual([
      'Code     Name    Required fields',
      'us-post  USPS',
      'nl-post  PostNL  destinationPostCode, destinationCountryCode',
    ]);
  });

  it('60 columns → a line for each cell that is not empty, broken between words', () => {
    expect(formatTable(head, rows, { width: 60, colours }).split('\n')).toEqual([
      'us-post',
      '  Name             USPS',
      'nl-post',
      '  Name             PostNL',
      '  Required fields  destinationPostCode,',
      '                   destinationCountryCode',
    ]);
  });

  it('a table that is wider than the screen → lines, too', () => {
    const wide = [['us-post', 'n'.repeat(100), '']];
    expect(formatTable(head, wide, { width: 90, colours })).toBe(
      `us-post\n  Name             ${'n'.repeat(100)}`,
    );
  });
});

describe('a narrow screen', () => {
  it.each([
    `track ${NUMBER}`,
    `show ${NUMBER}`,
    `watch ${NUMBER}`,
    'watch --interval 5d',
    'list',
    'couriers',
    'couriers nobody',
    'import --help',
    'fake --help',
    '--help',
    'import nowhere.csv',
  ])('%s in 60 columns → no line is longer, and each line ends with a whole word', async (line) => {
    const fake = connect(createFakeTrackingService({ resultsDelayMs: 0, limits: false }));
    fake.play(NUMBER, 'delivered', { speed: Number.POSITIVE_INFINITY });
    await runLine(`track ${NUMBER}`);
    const wide = await runLine(line);
    const narrow = await runLine(line, { isLive: true, columns: 60 });
    const printed = stripVTControlCharacters(narrow.stdout + narrow.stderr).split(/[\r\n]+/);
    expect(Math.max(...printed.map((text) => text.length))).toBeLessThanOrEqual(60);
    expect(printed.length).toBeGreaterThan(1);
    const words = (text: string) => text.split(/\s+/);
    for (const word of words(printed.filter((text) => !/last poll/.test(text)).join(' ')))
      expect(words(wide.stdout + wide.stderr)).toContain(word);
  });

  it('a pipe with the variable COLUMNS → this width; without it, no limit', () => {
    expect(makeTerminal().terminal.width).toBe(Number.POSITIVE_INFINITY);
    vi.stubEnv('COLUMNS', '60');
    expect(makeTerminal().terminal.width).toBe(60);
    expect(makeTerminal({ isLive: true, columns: 90 }).terminal.width).toBe(90);
    expect(makeTerminal({ isLive: true, columns: 0 }).terminal.width).toBe(60);
    vi.stubEnv('COLUMNS', 'many');
    expect(makeTerminal().terminal.width).toBe(Number.POSITIVE_INFINITY);
  });
});
