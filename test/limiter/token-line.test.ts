import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TokenLine } from '../../src/limiter/token-line.ts';
import type { Token } from '../../src/limiter/token-pool.ts';

test('any pushes and shifts → the first and the size are those of an array', () => {
  fc.assert(
    fc.property(fc.array(fc.boolean(), { maxLength: 200 }), (steps) => {
      const line = new TokenLine();
      const array: Token[] = [];
      steps.forEach((isPush, freeAt) => {
        if (isPush) {
          const token: Token = { state: 'settled', sentAt: 0, freeAt };
          line.push(token);
          array.push(token);
        } else if (array.length > 0) {
          line.shift();
          array.shift();
        }
        expect(line.first).toBe(array[0]);
        expect(line.size).toBe(array.length);
      });
    }),
  );
});
