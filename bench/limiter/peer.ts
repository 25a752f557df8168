/** One of several processes that use the same account; `drive.ts` forks it. */
import { contenders } from './contenders.ts';
import { drive, type PeerTask } from './drive.ts';

// Sound: the parent sends nothing else.
process.once('message', async (message) => {
  const task = message as PeerTask;
  const contender = contenders.find(({ name }) => name === task.contender);
  if (!contender) throw new Error(`Expected a known contender, got ${task.contender}`);
  process.send?.(await drive(contender, task.target, task.calls));
  process.disconnect();
});
process.send?.('ready');
