/** The client of the soak: one process that polls all trackers through one stream. */
import { Redis } from 'ioredis';
import { answerCommands, count, makeClient, note, noteGivenUp, task, tell } from './member.ts';

const POLL_EVERY_MS = 10_000;

// As a user has it, except that a lost connection is not printed at every attempt.
const redis = new Redis(task.redisUrl);
redis.on('error', () => {});
const client = makeClient(redis);
const polls = client.trackers.pollMany(task.trackerIds, {
  intervalMs: POLL_EVERY_MS,
  initialDelayMs: 0,
  concurrency: 50,
});
/** The trackers that are still to be polled once, and what happens then. */
let drain: { readonly left: Set<string>; readonly done: () => void } | undefined;

const reading = (async () => {
  for await (const { id, error, newEvents } of polls) {
    if (error === undefined) count('calls');
    else noteGivenUp();
    for (const { eventId } of newEvents ?? []) note('polled', `${id}:${eventId}`);
    drain?.left.delete(id);
    if (drain?.left.size === 0) drain.done();
  }
})();

answerCommands({
  drain: () =>
    new Promise((done) => {
      drain = { left: new Set(task.trackerIds), done };
    }),
  close: async () => {
    await polls.return();
    await reading;
    await redis.quit();
  },
});
tell({ kind: 'ready' });
