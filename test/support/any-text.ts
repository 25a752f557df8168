import fc from 'fast-check';

const codeUnit = fc.oneof(
  // Everyday characters and the ones that mean something in a URL come up often enough to meet each other.
  fc.constantFrom(...'.%/\\?#&;: 2eEfF'),
  fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)),
  fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code)),
);

/** Any text at all, halves of surrogate pairs included. */
export function anyText({ maxLength }: { maxLength: number }): fc.Arbitrary<string> {
  return fc.array(codeUnit, { maxLength }).map((units) => units.join(''));
}
