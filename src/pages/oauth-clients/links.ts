/** `/profile/oauth-clients/:id/links`: the owner's links, which the consent page shows. */
import type { Context, Next } from 'koa';
import { type Message, message, type Text } from '../../base/message.ts';
import { type ClientLinks, isSameLinks, LINKS, type LinkKind, normalizeLinks } from '../../clients/client.ts';
import type { ClientRegistry } from '../../clients/client-registry.ts';
import { checkLinks } from '../../clients/client-rules.ts';
import { formOf } from '../../provider/form.ts';
import type { PageKit } from '../page-kit.ts';
import { get, post, type Redraw, type Route } from '../routes.ts';
import { NOTHING_SENT, typedOf } from '../signed-in.ts';
import { CLIENT, type OwnClientPages, ownClientOf, urlOf } from './own-client.ts';

declare module '../view-data.ts' {
  interface ViewData {
    readonly 'oauth-client-links': {
      readonly client: { readonly name: string; readonly url: string };
      readonly notice: Text | undefined;
      readonly isVerified: boolean;
      readonly action: string;
      readonly problems: readonly FormProblem[];
      readonly fields: readonly {
        readonly name: string;
        readonly label: Message;
        readonly hint: Message;
        readonly value: string;
        readonly problem: Text | undefined;
      }[];
    };
  }
}

const PATH = `${CLIENT}/links`;
const SAVED = message('client-links.saved');
const labelOf = (kind: LinkKind): Message => message(`consent.${kind}`);

const fieldName = (kind: LinkKind): string => `${kind}_url`;

const linksIn = (form: URLSearchParams): ClientLinks =>
  Object.fromEntries(LINKS.map((kind) => [kind, form.get(fieldName(kind)) ?? '']));

export function clientLinksPage(parts: {
  readonly kit: PageKit;
  readonly own: OwnClientPages;
  readonly clients: ClientRegistry;
}): Route[] {
  const { kit, own, clients } = parts;

  async function draw(ctx: Context, typed: ClientLinks, problem?: Text): Promise<void> {
    const client = ownClientOf(ctx);
    const found = checkLinks(normalizeLinks(typed));
    const problemOf = (kind: LinkKind) => found.find(({ code }) => code === kind)?.text;
    await kit.render(ctx, 'oauth-client-links', {
      client: { name: client.name, url: urlOf(client) },
      notice: typedOf(ctx) ? NOTHING_SENT : undefined,
      isVerified: client.isVerified,
      action: ctx.path,
      problems: [
        ...(problem === undefined ? [] : [{ message: problem }]),
        ...found.map(({ code, text = '' }) => ({
          field: fieldName(code),
          message: message('client-links.problem', { field: labelOf(code), problem: text }),
        })),
      ],
      fields: LINKS.map((kind) => ({
        name: fieldName(kind),
        label: labelOf(kind),
        hint: message(`client-links.hint-${kind}`),
        value: typed[kind] ?? '',
        problem: problemOf(kind),
      })),
    });
  }

  function show(ctx: Context): Promise<void> {
    const typed = typedOf(ctx);
    return draw(ctx, typed ? linksIn(typed) : ownClientOf(ctx).links);
  }

  const redraw: Redraw = {
    isForEverybody: false,
    draw: (ctx, problem) => own.requireOwnClient(ctx, () => draw(ctx, linksIn(formOf(ctx)), problem)),
  };

  /** Continues if the entered links are valid. */
  async function check(ctx: Context, next: Next): Promise<void> {
    const client = ownClientOf(ctx);
    const typed = linksIn(formOf(ctx));
    const links = normalizeLinks(typed);
    if (isSameLinks(links, client.links)) return kit.notices.redirect(ctx, urlOf(client), SAVED);
    if (checkLinks(links).length === 0) return next();
    ctx.status = 422;
    await draw(ctx, typed);
  }

  async function save(ctx: Context): Promise<void> {
    const client = ownClientOf(ctx);
    const { id } = client;
    const links = normalizeLinks(linksIn(formOf(ctx)));
    await clients.edit(id, { links }, (tx) => own.record(ctx, 'client_changed', { ...links }, tx));
    await kit.notices.redirect(ctx, urlOf(client), SAVED);
  }

  return [get(PATH, ...own.page, show), post(PATH, ...own.form(redraw), check, kit.requireRecentSignIn, save)];
}
