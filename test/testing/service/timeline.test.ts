import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Timeline } from '../../../src/testing/service/state.ts';

describe('Timeline', () => {
  it('any plan → run in the order of time, and of planning within an instant', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(20), { maxLength: 40 }), (times) => {
        const timeline = new Timeline();
        const ran: { at: number; planned: number }[] = [];
        for (const [planned, at] of times.entries()) timeline.schedule(at, () => ran.push({ at, planned }));
        timeline.catchUp(20);
        const expected = times
          .map((at, planned) => ({ at, planned }))
          .sort((a, b) => a.at - b.at || a.planned - b.planned);
        expect(ran).toEqual(expected);
      }),
    );
  });

  it('an action that is not due → waits', () => {
    const timeline = new Timeline();
    const ran: number[] = [];
    timeline.schedule(10, (atMs) => ran.push(atMs));
    timeline.catchUp(9);
    expect(ran).toEqual([]);
    timeline.catchUp(10);
    expect(ran).toEqual([10]);
  });

  it('caught up late → the action is told its own instant', () => {
    const timeline = new Timeline();
    const ran: number[] = [];
    timeline.schedule(10, (atMs) => ran.push(atMs));
    timeline.catchUp(500);
    expect(ran).toEqual([10]);
  });

  it('an action that plans another one which is due → both run', () => {
    const timeline = new Timeline();
    const ran: number[] = [];
    timeline.schedule(10, (atMs) => {
      ran.push(atMs);
      timeline.schedule(12, (laterMs) => ran.push(laterMs));
    });
    timeline.catchUp(20);
    expect(ran).toEqual([10, 12]);
  });
});
