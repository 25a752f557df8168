import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { real } from './virtual-clock.ts';

setFlagsFromString('--expose_gc');
// Sound: the flag above makes `gc` a global of every new context.
const collectGarbage = runInNewContext('gc') as () => void;

/** Bytes on the heap that are still in use; what is cleaned up after a collection is collected by the next one. */
export async function usedHeapBytes(): Promise<number> {
  for (let round = 0; round < 4; round += 1) {
    collectGarbage();
    await new Promise<void>((resolve) => {
      real.setImmediate(resolve);
    });
  }
  return process.memoryUsage().heapUsed;
}

export const MIB = 2 ** 20;
