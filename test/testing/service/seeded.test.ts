import { describe, expect, it } from 'vitest';
import { SeededIds, seededRandom } from '../../../src/testing/service/seeded.ts';

describe('SeededIds', () => {
  it('the same seed → the same ids', () => {
    const [first, second] = [new SeededIds(7), new SeededIds(7)];
    expect([first.next('tracker'), first.next('tracker')]).toEqual([
      second.next('tracker'),
      second.next('tracker'),
    ]);
  });

  it('another seed → other ids', () => {
    expect(new SeededIds(1).next('tracker')).not.toBe(new SeededIds(2).next('tracker'));
  });

  it('ids of another kind in between → change nothing', () => {
    const [first, second] = [new SeededIds(7), new SeededIds(7)];
    first.next('request');
    expect(first.next('tracker')).toBe(second.next('tracker'));
  });

  it('1000 ids → all different', () => {
    const ids = new SeededIds(7);
    expect(new Set(Array.from({ length: 1000 }, () => ids.next('event'))).size).toBe(1000);
  });
});

describe('seededRandom', () => {
  it('any seed → numbers from 0 up to 1', () => {
    const random = seededRandom('seed');
    const numbers = Array.from({ length: 1000 }, random);
    expect(Math.min(...numbers)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...numbers)).toBeLessThan(1);
    expect(Math.min(...numbers)).toBeLessThan(0.1);
    expect(Math.max(...numbers)).toBeGreaterThan(0.9);
  });
});
