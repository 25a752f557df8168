import { Comment, type TagString } from 'typedoc';

/** The content of a block tag; undefined when there is none. */
export function tagOf(comment: Comment | undefined, tag: TagString): string | undefined {
  const found = comment?.getTag(tag);
  return found && Comment.combineDisplayParts(found.content).trim();
}
