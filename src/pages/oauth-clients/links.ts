/** `/profile/oauth-clients/:id/links`: the links of a client, which the consent page shows. */
import { type Message, message } from '../../base/message.ts';
import { type ClientLinks, isSameLinks, LINKS, type LinkKind, normalizeLinks } from '../../clients/client.ts';
import type { ClientRegistry } from '../../clients/client-registry.ts';
import { checkLinks } from '../../clients/client-rules.ts';
import { formRoutes, problemText, type Said } from '../form-step.ts';
import type { PageKit } from '../page-kit.ts';
import type { Route } from '../routes.ts';
import { CLIENT, type OwnClientPages, ownClientOf, urlOf } from './own-client.ts';

declare module '../view-data.ts' {
  interface ViewData {
    readonly 'oauth-client-links': Said & {
      readonly client: { readonly name: string; readonly url: string };
      readonly isVerified: boolean;
      readonly action: string;
      readonly fields: readonly {
        readonly name: string;
        readonly label: Message;
        readonly hint: Message;
        readonly value: string;
      }[];
    };
  }
}

const SAVED = message('client-links.saved');
const labelOf = (kind: LinkKind): Message => message(`consent.${kind}`);

const fieldName = (kind: LinkKind): string => `${kind}_url`;

export function clientLinksPage(parts: {
  readonly kit: PageKit;
  readonly own: OwnClientPages;
  readonly clients: ClientRegistry;
}): Route[] {
  const { kit, own, clients } = parts;

  return formRoutes<ClientLinks>(kit, {
    path: `${CLIENT}/links`,
    admit: [own.requireOwnClient],
    isForEverybody: false,
    read: (form) => Object.fromEntries(LINKS.map((kind) => [kind, form.get(fieldName(kind)) ?? ''])),
    stored: (ctx) => ownClientOf(ctx).links,
    async draw(ctx, typed, said) {
      const client = ownClientOf(ctx);
      await kit.render(ctx, 'oauth-client-links', {
        client: { name: client.name, url: urlOf(client) },
        ...said,
        isVerified: client.isVerified,
        action: ctx.path,
        fields: LINKS.map((kind) => ({
          name: fieldName(kind),
          label: labelOf(kind),
          hint: message(`client-links.hint-${kind}`),
          value: typed[kind] ?? '',
        })),
      });
    },
    fieldOf(problem) {
      const kind = LINKS.find((one) => one === problem.code);
      if (!kind) return undefined;
      const summary = message('client-links.problem', { field: labelOf(kind), problem: problemText(problem) });
      return { field: fieldName(kind), summary };
    },
    check(ctx, typed) {
      const client = ownClientOf(ctx);
      const links = normalizeLinks(typed);
      if (isSameLinks(links, client.links)) return { url: urlOf(client), said: SAVED };
      const problems = checkLinks(links);
      return problems.length > 0 ? { problems } : undefined;
    },
    async save(ctx, typed) {
      const client = ownClientOf(ctx);
      const links = normalizeLinks(typed);
      await clients.edit(client.id, { links }, (tx) => own.record(ctx, 'client_changed', { ...links }, tx));
      return { url: urlOf(client), said: SAVED };
    },
  });
}
