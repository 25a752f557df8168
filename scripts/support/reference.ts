import { type Application, Comment, CommentTag, Converter, type DocumentReflection } from 'typedoc';

/** An export goes into the first group that matches the file of its declaration. The reference shows the groups in this order. */
const GROUPS: readonly (readonly [group: string, files: RegExp])[] = [
  ['Client', /^(?:client|options|http\/.+|resources\/.+)\.ts$/],
  ['Polling and bulk import', /^(?:polling|bulk)\//],
  ['Errors', /^(?:errors|schemas\/api-error|common\/validation)\.ts$/],
  ['Limits', /^(?:limiter\/|redis\/(?!dedupe-store))/],
  ['Hooks and logs', /^observability\//],
  ['Receiving webhooks', /^webhooks\/(?!parse|dedupe-store|memory-store)/],
  [
    'Stores of handled events',
    /^(?:webhooks\/(?:dedupe|memory)-store|redis\/dedupe-store|postgres\/.+)\.ts$/,
  ],
  ['Reading and ordering events', /^(?:events\/|webhooks\/parse)/],
  ['Webhook sender', /^testing\/webhooks\//],
  ['Builders', /^testing\/builders\.ts$/],
  ['Fake service', /^testing\//],
  ['Spans and metrics', /^opentelemetry\//],
  ['Records', /^schemas\//],
  ['Endpoints and version', /^(?:endpoints|version)\.ts$/],
];
/** Every page that is not an export belongs to one of these groups. */
const PARTS = ['Guides', 'Recipes', 'Imports'];
/** This group lists exports whose pages belong to an earlier import. */
const SHARED = 'Also in other imports';

/**
 * Gives the reference its outline: guides and recipes under their headings, and the exports of each import in groups, because
 * a list by kind would show 100 interfaces together. An export that matches no group gets the category `Other`.
 *
 * @param app - an application that has not converted yet
 */
export function arrangeReference(app: Application): void {
  app.options.setValue('categoryOrder', [...PARTS, ...GROUPS.map(([group]) => group), SHARED]);
  app.converter.on(Converter.EVENT_CREATE_DOCUMENT, (_context, document) => nameDocument(document));
  // A high priority lets this listener run before TypeDoc reads the categories from the comments.
  app.converter.on(
    Converter.EVENT_RESOLVE_BEGIN,
    ({ project }) => {
      // Without this tag, the documents would follow the order in `typedoc.json`.
      project.comment = new Comment([], [tag('@sortStrategy', 'documents-first')]);
      for (const module of project.children ?? []) {
        categorize(module, 'Imports');
        for (const exported of module.children ?? []) {
          const path = project.getSymbolIdFromReflection(exported)?.packagePath.replace(/^src\//, '') ?? '';
          const [found] = GROUPS.find(([, files]) => files.test(path)) ?? [];
          const group = exported.isReference() ? SHARED : found;
          if (group !== undefined) categorize(exported.getNonIndexSignatures()[0] ?? exported, group);
        }
      }
    },
    1_000,
  );
  app.converter.on(Converter.EVENT_RESOLVE_END, ({ project }) => {
    // The page already shows the name as its title.
    const [start] = project.readme ?? [];
    if (start !== undefined) start.text = start.text.replace(/^# .+\n/, '');
  });
}

function categorize(reflection: { comment?: Comment }, category: string): void {
  reflection.comment ??= new Comment();
  reflection.comment.blockTags.push(tag('@category', category));
}

function tag(name: `@${string}`, text: string): CommentTag {
  return new CommentTag(name, [{ kind: 'text', text }]);
}

/** Names a document by its first heading, and removes code marks from headings because anchors and outlines omit them. */
function nameDocument(document: DocumentReflection): void {
  const isRecipe = document.name.startsWith('recipes/');
  document.frontmatter['category'] = isRecipe ? 'Recipes' : 'Guides';
  let line = '';
  for (const part of document.content) {
    if (part.kind === 'code' && /^#+ /.test(line))
      Object.assign(part, { kind: 'text', text: part.text.replaceAll('`', '') });
    line = (line + part.text).split('\n').at(-1) ?? '';
  }
  const [, heading] = /^# (.+)$/m.exec(Comment.combineDisplayParts(document.content)) ?? [];
  document.name = heading ?? document.name;
}
