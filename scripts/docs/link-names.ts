// Turns the names in comments into links, so that comments stay as short as in the sources.
import { type CommentDisplayPart, type ProjectReflection, type Reflection, ReflectionKind } from 'typedoc';

type Targets = ReadonlyMap<string, Reflection>;

/** What each exported name stands for; a name that stands for several things is left out. */
function targetsOf(project: ProjectReflection): Targets {
  const targets = new Map<string, Reflection | undefined>();
  for (const module of project.getChildrenByKind(ReflectionKind.Module)) {
    for (const child of module.children ?? []) {
      if (child.isReference()) continue;
      targets.set(child.name, targets.has(child.name) ? undefined : child);
    }
  }
  return new Map([...targets].flatMap(([name, target]) => (target === undefined ? [] : [[name, target]])));
}

function link(tag: '@link' | '@linkcode', name: string, target: Reflection): CommentDisplayPart {
  return { kind: 'inline-tag', tag, text: name, target };
}

/** Links a name in backticks, and the names of error classes anywhere. */
function linked(part: CommentDisplayPart, owner: Reflection, targets: Targets): CommentDisplayPart[] {
  if (part.kind === 'code') {
    const name = part.text.replaceAll('`', '');
    const target = targets.get(name);
    return target === undefined || target === owner ? [part] : [link('@linkcode', name, target)];
  }
  if (part.kind !== 'text') return [part];
  return part.text.split(/\b([A-Z]\w*Error)\b/).flatMap((text): CommentDisplayPart[] => {
    const target = targets.get(text);
    if (target !== undefined && target !== owner) return [link('@link', text, target)];
    return text === '' ? [] : [{ kind: 'text', text }];
  });
}

/**
 * Links the exported names that comments mention.
 *
 * @param project - changed: its comments hold links afterwards
 */
export function linkNames(project: ProjectReflection): void {
  const targets = targetsOf(project);
  for (const reflection of Object.values(project.reflections)) {
    const { comment } = reflection;
    if (comment === undefined) continue;
    const links = (parts: readonly CommentDisplayPart[]) =>
      parts.flatMap((part) => linked(part, reflection, targets));
    comment.summary = links(comment.summary);
    for (const tag of comment.blockTags) if (tag.tag !== '@example') tag.content = links(tag.content);
  }
}
