/**
 * Waits for aborts with one listener a signal, however many calls share it: Node warns from the eleventh listener on,
 * and ten thousand of them cost more than the queue itself.
 */
export class AbortGroups<Member extends object> {
  readonly #groups = new Map<AbortSignal, { readonly members: Set<Member>; readonly listener: () => void }>();
  readonly #onAbort: (member: Member, reason: unknown) => void;

  /** @param onAbort - called once for every member of a signal that aborts, in the order they were added */
  constructor(onAbort: (member: Member, reason: unknown) => void) {
    this.#onAbort = onAbort;
  }

  add(signal: AbortSignal, member: Member): void {
    let group = this.#groups.get(signal);
    if (!group) {
      group = { members: new Set(), listener: () => this.#abort(signal) };
      this.#groups.set(signal, group);
      signal.addEventListener('abort', group.listener, { once: true });
    }
    group.members.add(member);
  }

  remove(signal: AbortSignal, member: Member): void {
    const group = this.#groups.get(signal);
    if (!group?.members.delete(member) || group.members.size > 0) return;
    this.#groups.delete(signal);
    signal.removeEventListener('abort', group.listener);
  }

  #abort(signal: AbortSignal): void {
    const group = this.#groups.get(signal);
    this.#groups.delete(signal);
    for (const member of group?.members ?? []) this.#onAbort(member, signal.reason);
  }
}
