import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { RecencyMap } from '../../src/webhooks/recency-map.ts';

describe('RecencyMap', () => {
  test('a key that was set again → no longer the least recent', () => {
    const map = new RecencyMap<number>();
    for (const key of ['a', 'b', 'c']) map.set(key, 1);
    expect(map.leastRecent()).toEqual(['a', 1]);
    map.set('a', 2);
    expect(map.leastRecent()).toEqual(['b', 1]);
  });

  test('emptied and filled again → the new least recent key', () => {
    const map = new RecencyMap<number>();
    map.set('a', 1);
    map.leastRecent();
    map.delete('a');
    expect(map.leastRecent()).toBeUndefined();
    map.set('b', 2);
    expect(map.leastRecent()).toEqual(['b', 2]);
  });

  test('any sequence of operations → the same as a list kept in order of use', () => {
    const key = fc.constantFrom('a', 'b', 'c', 'd');
    const step = fc.oneof(
      fc.record({ operation: fc.constant('set'), key }),
      fc.record({ operation: fc.constant('delete'), key }),
      fc.record({ operation: fc.constant('evict'), key }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const map = new RecencyMap<number>();
        let model: string[] = [];
        for (const { operation, key: name } of steps) {
          const target = operation === 'evict' ? (map.leastRecent()?.[0] ?? '') : name;
          if (operation === 'evict') expect(target).toBe(model[0] ?? '');
          model = model.filter((other) => other !== target);
          if (operation === 'set') {
            map.set(target, 1);
            model.push(target);
          } else {
            map.delete(target);
          }
          expect([...map].map(([used]) => used)).toEqual(model);
          expect(map.size).toBe(model.length);
        }
      }),
    );
  });
});
