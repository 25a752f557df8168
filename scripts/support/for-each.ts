/** Works through a list, a few items at a time; what has begun ends before an error gets out. */
export async function forEach<T>(
  items: readonly T[],
  atOnce: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const queue = items.values();
  const workThrough = async () => {
    for (const item of queue) await work(item);
  };
  const ends = await Promise.allSettled(Array.from({ length: atOnce }, workThrough));
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
}
