import { linkedController } from '../common/timing.ts';
import type { Due } from './due-heap.ts';
import type { PollMemory } from './poll-once.ts';
import { NO_EVENTS_SEEN } from './seen-events.ts';

/** One of many trackers. It holds no promise, timer or listener between its polls. */
export class PolledTracker implements PollMemory, Due {
  readonly id: string;
  polls = 0;
  errorsInARow = 0;
  seen = NO_EVENTS_SEEN;
  dueAt = 0;
  place = -1;
  turn = 0;
  /** True once nobody wants to know of it any more. */
  hasLeft = false;
  #controller: AbortController | undefined;

  constructor(id: string) {
    this.id = id;
  }

  /** Runs a poll with a signal that also aborts when the tracker leaves. */
  async run<T>(signal: AbortSignal, poll: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { controller, takeBack } = linkedController(signal);
    this.#controller = controller;
    try {
      return await poll(controller.signal);
    } finally {
      takeBack();
      this.#controller = undefined;
    }
  }

  leave(): void {
    this.hasLeft = true;
    this.#controller?.abort(new Error('The tracker is polled no more'));
  }
}
