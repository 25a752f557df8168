import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Microseconds one call takes, as the mean of many. */
export function microsecondsPerCall(call: () => unknown, calls: number): number {
  const startedAt = performance.now();
  for (let index = 0; index < calls; index += 1) call();
  return ((performance.now() - startedAt) * 1000) / calls;
}

setFlagsFromString('--expose-gc');
// Sound: the flag above gives every new context this function.
const collectGarbage = runInNewContext('gc') as () => void;

/** Bytes on the heap that something still holds. */
export function heldBytes(): number {
  collectGarbage();
  collectGarbage();
  return process.memoryUsage().heapUsed;
}
