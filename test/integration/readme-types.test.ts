import { beforeAll, describe, expect, it } from 'vitest';
import { readReadme, typeScriptBlocks } from '../readme/support/readme.ts';
import { complaintsAbout } from '../readme/support/type-check.ts';

describe('the TypeScript of the README', () => {
  const misspelt = {
    id: 'misspelt 1',
    line: 10_000,
    code: "import { TrackingClient } from 'tracking-client';\nnew TrackingClient({ baseURL: 'https://a.test' });\n",
  };
  let complaints: string[] = [];

  // One compilation for all of them: most of its time goes into the types that every block shares.
  beforeAll(() => {
    const { programs, tests } = typeScriptBlocks(readReadme());
    complaints = complaintsAbout([...programs, ...tests, misspelt]);
  }, 60_000);

  it('every block → compiles in a strict project', () => {
    const real = complaints.filter((complaint) => !complaint.startsWith('README.md:10001 '));
    expect(real, real.join('\n')).toEqual([]);
  });

  it('a block with a misspelt option → named with its line', () => {
    expect(complaints).toContainEqual(expect.stringMatching(/^README\.md:10001 .*'baseURL'/));
  });
});
