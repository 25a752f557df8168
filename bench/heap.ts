import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose_gc');
// The flag above makes `gc` a global of every new context.
const collectGarbage = runInNewContext('gc') as () => void;

/** Collects garbage four times before it reads the heap, because finalizers free objects for the next collection. */
export async function usedHeapBytes(): Promise<number> {
  for (let round = 0; round < 4; round += 1) {
    collectGarbage();
    await new Promise<void>((resolve) => {
      setImmediate(resolve);
    });
  }
  return process.memoryUsage().heapUsed;
}
