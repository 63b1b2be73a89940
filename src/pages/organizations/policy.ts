/** `/profile/organizations/:id/policy`: owners and admins decide which apps and API keys have access. */
import type { Context, Next } from 'koa';
import type { ApprovableClient, ClientStandings } from '../../authorizations/client-standing.ts';
import type { ActingAdmin, OrganizationEndings } from '../../authorizations/organization-endings.ts';
import { allOf, isUndecided, type OrganizationReach } from '../../authorizations/organization-reach.ts';
import type { ReachingClient } from '../../authorizations/reaching.ts';
import { type Message, message, type Text } from '../../base/message.ts';
import { Refusal } from '../../base/refusal.ts';
import { formOf } from '../../provider/form.ts';
import { containsText } from '../lists.ts';
import type { PageKit } from '../page-kit.ts';
import { accountOf, NOTHING_SENT, typedOf } from '../signed-in.ts';
import type { Marks } from './client.ts';
import { makerOf, through } from './reach-parts.ts';

/** Above this number, the clients to approve are found by a search. */
const MAX_LISTED = 20;
/** The name of the search button, which is sent only if that button was pressed. */
const SEARCHES = 'search';
const NOT_CHANGED = message('organization-policy.not-changed');

/** The fields of a submitted policy form. */
interface Policy {
  readonly clients: string | null;
  readonly apiKeys: string | null;
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

  /** @param sent what was typed, which the page keeps */
  async function draw(ctx: Context, sent?: Policy, problem?: Text): Promise<void> {
    const { organization } = actor(ctx);
    const { asksFirst, allowsApiKeys } = await organizationReach.policyOf(organization.id);
    const clients = await organizationReach.forPage(accountOf(ctx).id, () =>
      allOf(organizationReach.of(organization.id).clients),
    );
    const undecided = new Map(clients.filter(isUndecided).map((client) => [client.id, client]));
    const shown = await clientStandings.approvable([...undecided.keys()]);
    const approved = new Set(sent ? sent.approved : asksFirst ? [] : undecided.keys());
    const found = shown.filter((client) => containsText(textOf(client), sent?.search ?? ''));
    const listed = found.slice(0, MAX_LISTED);
    await kit.render(ctx, 'organization-policy', {
      name: organization.name,
      url: urlOf(organization),
      action: ctx.path,
      problem,
      asksFirst: sent ? sent.clients === 'ask' : asksFirst,
      allowsApiKeys: sent ? sent.apiKeys === 'allow' : allowsApiKeys,
      shown: marks.of(organization.id, shown),
      total: shown.length,
      found: found.length,
      search: shown.length > MAX_LISTED ? (sent?.search ?? '') : undefined,
      clients: listed.map((client) => ({
        id: client.id,
        name: client.name,
        detail: detailOf(client, undecided.get(client.id)),
        isChosen: approved.has(client.id),
      })),
      others: shown.filter((client) => approved.has(client.id) && !listed.includes(client)).map(({ id }) => id),
    });
  }

  /** Answers the search with the page, which keeps the ticks of the clients that it does not list. */
  async function search(ctx: Context, next: Next): Promise<void> {
    const form = formOf(ctx);
    await (form.has(SEARCHES) ? draw(ctx, policyIn(form)) : next());
  }

  async function save(ctx: Context): Promise<void> {
    const sent = policyIn(formOf(ctx));
    const { clients, apiKeys, approved } = sent;
    const by = actor(ctx);
    const reach = organizationReach.of(by.organization.id);
    const chosen = (await reach.clientsNamed(approved)).filter(isUndecided);
    const isComplete = ['open', 'ask'].includes(clients ?? '') && ['allow', 'refuse'].includes(apiKeys ?? '');
    if (!isComplete || chosen.length < approved.length) {
      ctx.status = 422;
      return draw(ctx, undefined, NOT_CHANGED);
    }
    const policy = { asksFirst: clients === 'ask', allowsApiKeys: apiKeys === 'allow' };
    try {
      const approving = policy.asksFirst ? chosen : [];
      await organizationEndings.setPolicy(by, policy, approving, marks.in(by.organization.id, formOf(ctx)));
    } catch (error) {
      if (!(error instanceof Refusal) || error.code !== 'client_changed') throw error;
      ctx.status = 409;
      return draw(ctx, { ...sent, approved: [] }, NOT_CHANGED);
    }
    await kit.notices.redirect(ctx, urlOf(by.organization), message('organization-policy.saved'));
  }

  return {
    showPolicy: (ctx: Context): Promise<void> => {
      const typed = typedOf(ctx);
      return draw(ctx, typed && policyIn(typed), typed && NOTHING_SENT);
    },
    searchClients: search,
    savePolicy: save,
  };
}

const policyIn = (form: URLSearchParams): Policy => ({
  clients: form.get('clients'),
  apiKeys: form.get('api_keys'),
  approved: [...new Set(form.getAll('approve'))],
  search: (form.get('find') ?? '').trim().slice(0, 200),
});

const textOf = ({ name, ownerName, hosts }: ApprovableClient): string => [name, ownerName ?? '', ...hosts].join(' ');

const detailOf = ({ ownerName, hosts }: ApprovableClient, client?: ReachingClient): Message =>
  message('organization-policy.client', {
    maker: makerOf(ownerName),
    hosts: hosts.join(', '),
    people: client ? through(client) : '',
  });
