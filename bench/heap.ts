import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose_gc');
// The flag above makes `gc` a global of every new context.
const collectGarbage = runInNewContext('gc') as () => void;

/** Bytes in use on the heap. It collects four times, because finalizers of one collection free what the next one collects. */
export async function usedHeapBytes(): Promise<number> {
  for (let round = 0; round < 4; round += 1) {
    collectGarbage();
    await new Promise<void>((resolve) => {
      setImmediate(resolve);
    });
  }
  return process.memoryUsage().heapUsed;
}
