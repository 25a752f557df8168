type Step = string | { readonly value: unknown };

/** Writes JSON with sorted keys, without recursion, because a body may be nested deeper than the call stack. */
export function canonicalJson(root: unknown): string {
  const parts: string[] = [];
  const steps: Step[] = [{ value: root }];
  for (let step = steps.pop(); step !== undefined; step = steps.pop()) {
    if (typeof step === 'string') parts.push(step);
    else if (typeof step.value === 'object' && step.value !== null) pushContainer(steps, step.value);
    else parts.push(JSON.stringify(step.value) ?? 'null');
  }
  return parts.join('');
}

/** Puts the parts of an array or object on the stack, last part first, because the stack is read from its end. */
function pushContainer(steps: Step[], container: object): void {
  const isArray = Array.isArray(container);
  const entries = Object.entries(container).filter(([, value]) => isArray || value !== undefined);
  if (!isArray) entries.sort(([a], [b]) => (a < b ? -1 : 1));
  steps.push(isArray ? ']' : '}');
  for (let index = entries.length - 1; index >= 0; index -= 1) {
    const [key, value] = entries[index] ?? [];
    steps.push({ value });
    const comma = index === 0 ? '' : ',';
    steps.push(isArray ? comma : `${comma}${JSON.stringify(key)}:`);
  }
  steps.push(isArray ? '[' : '{');
}
