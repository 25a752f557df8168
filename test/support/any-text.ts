import fc from 'fast-check';

const codeUnit = fc.oneof(
  // Common characters and those with a meaning in URLs come up often enough to appear side by side.
  fc.constantFrom(...'.%/\\?#&;: 2eEfF'),
  fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)),
  fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code)),
);

/** Any text at all, halves of surrogate pairs included. */
export function anyText({ maxLength }: { maxLength: number }): fc.Arbitrary<string> {
  return fc.array(codeUnit, { maxLength }).map((units) => units.join(''));
}
