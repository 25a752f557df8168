import { fileURLToPath } from 'node:url';
import { type DeclarationReflection, ReflectionKind } from 'typedoc';
import { beforeAll, describe, expect, test } from 'vitest';
import { createReference, type Reference } from '../../scripts/docs/reference.ts';

const path = (name: string) => fileURLToPath(new URL(`exports/${name}`, import.meta.url));

let reference: Reference;

// One reading of the sources for all tests: it takes seconds, and nothing changes it.
beforeAll(async () => {
  reference = await createReference({ entryPoints: [path('index.ts')], tsconfig: path('tsconfig.json') });
}, 60_000);

function complaintsAbout(name: string): string[] {
  return reference.complaints.filter((complaint) => complaint.includes(name));
}

function exported(name: string): DeclarationReflection | undefined {
  return reference.project
    .getReflectionsByKind(ReflectionKind.All)
    .filter((reflection) => reflection.isDeclaration())
    .find((reflection) => reflection.name === name);
}

describe('an export whose comment says too little → a complaint that names what is missing', () => {
  test.each([
    ['withoutComment', 'does not have any documentation'],
    ['withoutParam', '@param other'],
    ['withoutReturns', '@returns'],
    ['withoutSentence', 'a sentence that says what it does'],
    ['withoutThrows', '@throws with the classes of errors'],
    ['withoutClass', '@throws with the classes of errors'],
    ['withoutUnitMs', 'the word for the unit'],
    ['withoutDefault', 'the default'],
    ['parcelSchema', '@specification in the form'],
    ['TrackersResource.get', '"@specification service.md 4"'],
  ])('%s → %s', (name, missing) => {
    expect(complaintsAbout(name)).toEqual([expect.stringContaining(missing)]);
  });
});

test.each(['complete', 'withDefault', 'WaitOptions to', 'Parcel to', 'TrackersResource to'])(
  'a comment that says enough (%s) → no complaint',
  (name) => {
    expect(complaintsAbout(`.${name}`)).toEqual([]);
  },
);

describe('what is shown', () => {
  test('a type that a schema makes → its name where it is used', () => {
    expect(String(exported('complete')?.signatures?.[0]?.type)).toBe('Parcel');
  });

  test('a type that a schema makes → its fields where it is declared', () => {
    expect(exported('Parcel')?.children?.map(({ name, type }) => `${name}: ${String(type)}`)).toEqual([
      'weight: number',
    ]);
  });

  test('a schema → its class', () => {
    expect(String(exported('parcelSchema')?.type)).toBe('ZodObject');
  });

  test('an exported name in backticks → a link', () => {
    const [, name] = exported('parcelSchema')?.comment?.summary ?? [];
    expect(name).toMatchObject({ kind: 'inline-tag', tag: '@linkcode', text: 'Parcel' });
  });
});
