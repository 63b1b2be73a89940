/** `/profile/organizations/:id/policy`: owners and admins decide which apps and API keys have access. */
import type { Context, Next } from 'koa';
import type { ApprovableClient, ClientStandings } from '../../authorizations/client-standing.ts';
import type { ActingAdmin, IsAsShown, OrganizationEndings } from '../../authorizations/organization-endings.ts';
import { allOf, isUndecided, type OrganizationReach } from '../../authorizations/organization-reach.ts';
import type { ReachingClient } from '../../authorizations/reaching.ts';
import { type Message, message, type Text } from '../../base/message.ts';
import { Refusal } from '../../base/refusal.ts';
import { formOf } from '../../provider/form.ts';
import { containsText } from '../lists.ts';
import type { PageKit } from '../page-kit.ts';
import { accountOf, NOTHING_SENT, typedOf } from '../signed-in.ts';
import type { Marks } from './client.ts';
import { MAX_NAMES, makerOf, through } from './reach-parts.ts';

/** Above this number, the clients to approve are found by a search. */
const MAX_LISTED = 20;
/** The name of the search button, which is sent only if that button was pressed. */
const SEARCHES = 'search';
const NOT_CHANGED = message('organization-policy.not-changed');

/** The fields of a submitted policy form. */
interface Policy {
  /** Undefined without a known choice, like the next. */
  readonly asksFirst: boolean | undefined;
  readonly allowsApiKeys: boolean | undefined;
  /** The ids of the clients to approve. */
  readonly approved: readonly string[];
  /** The search for one of the listed clients. */
  readonly search: string;
}

export function createPolicySteps(parts: {
  readonly kit: PageKit;
  readonly clientStandings: Pick<ClientStandings, 'approvable'>;
  readonly organizationEndings: OrganizationEndings;
  readonly organizationReach: OrganizationReach;
  readonly marks: Marks;
  /** Returns the user, and the organization that the path names. */
  readonly actor: (ctx: Context) => ActingAdmin;
  readonly urlOf: (organization: { readonly id: string }) => string;
}) {
  const { kit, clientStandings, organizationEndings, organizationReach, marks, actor, urlOf } = parts;

  /**
   * Ticks only what a page has listed, as it was then.
   *
   * @param form what was typed, which the page keeps, except the ticks of clients that have changed since
   */
  async function draw(
    ctx: Context,
    form?: URLSearchParams,
    said: { notice?: Text; problem?: Text } = {},
  ): Promise<void> {
    const { organization } = actor(ctx);
    const policy = await organizationReach.policyOf(organization.id);
    const sent = form && policyIn(form);
    const { asksFirst = policy.asksFirst, allowsApiKeys = policy.allowsApiKeys, search = '' } = sent ?? {};
    const clients = await organizationReach.forPage(accountOf(ctx).id, () =>
      allOf(organizationReach.of(organization.id).clients),
    );
    const undecided = new Map(clients.filter(isUndecided).map((client) => [client.id, client]));
    const approvable = await clientStandings.approvable([...undecided.keys()]);
    const countOf = ({ id }: ApprovableClient): number => undecided.get(id)?.count ?? 0;
    const byName = (a: ApprovableClient, b: ApprovableClient): number =>
      a.name.localeCompare(b.name, undefined, { numeric: true });
    // Those of most people first: of many, only the listed ones are ticked.
    const shown = [...approvable].sort((a, b) => countOf(b) - countOf(a) || byName(a, b));
    const found = shown.filter((client) => containsText(textOf(client), search));
    const listed = found.slice(0, MAX_LISTED);
    const sentIds = new Set(sent?.approved);
    const ticked = form ? shown.filter(({ id }) => sentIds.has(id)) : asksFirst ? [] : listed;
    const isAsShown: IsAsShown = form ? marks.in(organization.id, form) : () => true;
    const changed = ticked.filter((client) => !isAsShown(client));
    const chosen = ticked.filter(isAsShown);
    const others = chosen.filter((client) => !listed.includes(client));
    await kit.render(ctx, 'organization-policy', {
      name: organization.name,
      url: urlOf(organization),
      action: ctx.path,
      notice: said.notice,
      problems: [said.problem, changed.length > 0 ? changedText(changed) : undefined].flatMap((text) =>
        text ? [{ message: text }] : [],
      ),
      asksFirst,
      allowsApiKeys,
      shown: marks.of(organization.id, [...listed, ...others]),
      total: shown.length,
      found: found.length,
      search: shown.length > MAX_LISTED ? search : undefined,
      clients: listed.map((client) => ({
        id: client.id,
        name: client.name,
        detail: detailOf(client, undecided.get(client.id)),
        isChosen: chosen.includes(client),
      })),
      others: others.map(({ id }) => id),
    });
  }

  /** Answers the search with the page, which keeps the ticks of the clients that it does not list. */
  async function search(ctx: Context, next: Next): Promise<void> {
    const form = formOf(ctx);
    await (form.has(SEARCHES) ? draw(ctx, form) : next());
  }

  async function save(ctx: Context): Promise<void> {
    const form = formOf(ctx);
    const { asksFirst, allowsApiKeys, approved } = policyIn(form);
    const by = actor(ctx);
    const reach = organizationReach.of(by.organization.id);
    const named = await organizationReach.forPage(accountOf(ctx).id, () => reach.clientsNamed(approved));
    const chosen = named.filter(isUndecided);
    if (asksFirst === undefined || allowsApiKeys === undefined || chosen.length < approved.length) {
      ctx.status = 422;
      return draw(ctx, form, { problem: NOT_CHANGED });
    }
    try {
      const approving = asksFirst ? chosen : [];
      await organizationEndings.setPolicy(
        by,
        { asksFirst, allowsApiKeys },
        approving,
        marks.in(by.organization.id, form),
      );
    } catch (error) {
      if (!(error instanceof Refusal) || error.code !== 'client_changed') throw error;
      ctx.status = 409;
      return draw(ctx, form, { problem: NOT_CHANGED });
    }
    await kit.notices.redirect(ctx, urlOf(by.organization), message('organization-policy.saved'));
  }

  return {
    showPolicy: (ctx: Context): Promise<void> => {
      const typed = typedOf(ctx);
      return draw(ctx, typed, typed && { notice: NOTHING_SENT });
    },
    searchClients: search,
    savePolicy: save,
  };
}

const policyIn = (form: URLSearchParams): Policy => ({
  asksFirst: isFirst(form.get('clients'), 'ask', 'open'),
  allowsApiKeys: isFirst(form.get('api_keys'), 'allow', 'refuse'),
  approved: [...new Set(form.getAll('approve'))],
  search: (form.get('find') ?? '').trim().slice(0, 200),
});

const isFirst = (value: string | null, first: string, second: string): boolean | undefined =>
  value === first || (value === second ? false : undefined);

const textOf = ({ name, ownerName, hosts }: ApprovableClient): string => [name, ownerName ?? '', ...hosts].join(' ');

const detailOf = ({ ownerName, hosts }: ApprovableClient, client?: ReachingClient): Message =>
  message('organization-policy.client', {
    maker: makerOf(ownerName),
    hosts: hosts.join(', '),
    people: client ? through(client) : '',
  });

/** Says whose ticks are gone. */
function changedText(clients: readonly ApprovableClient[]): Message {
  const more = clients.length > MAX_NAMES ? ` +${clients.length - MAX_NAMES}` : '';
  const names = clients.slice(0, MAX_NAMES).map(({ name }) => name);
  return message('organization-policy.changed', { count: clients.length, apps: `${names.join(', ')}${more}` });
}
