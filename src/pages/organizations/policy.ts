/** `/profile/organizations/:id/policy`: owners and admins decide which apps and API keys have access. */
import type { Context } from 'koa';
import { collator } from '../../accounts/access/reach.ts';
import type { ApprovableClient } from '../../authorizations/client-standing.ts';
import type { IsAsShown } from '../../authorizations/organization-endings.ts';
import { allOf, isUndecided } from '../../authorizations/organization-reach.ts';
import type { ReachingClient } from '../../authorizations/reaching.ts';
import { type Message, message } from '../../base/message.ts';
import { Refusal } from '../../base/refusal.ts';
import { formRoutes, type Said } from '../form-step.ts';
import { containsText } from '../lists.ts';
import type { Route } from '../routes.ts';
import { accountOf } from '../signed-in.ts';
import { type DecidingParts, NOT_CHANGED } from './client.ts';
import { MAX_NAMES, makerOf, through } from './reach-parts.ts';

declare module '../view-data.ts' {
  interface ViewData {
    readonly 'organization-policy': Said & {
      readonly name: string;
      readonly url: string;
      readonly action: string;
      readonly asksFirst: boolean;
      readonly allowsApiKeys: boolean;
      /** Fingerprints of `clients` and `others`. A client can be approved only if its fingerprint is still the same. */
      readonly shown: string;
      /** The connected clients about which the organization has not decided. */
      readonly clients: readonly {
        readonly id: string;
        readonly name: string;
        readonly detail: Message;
        readonly isChosen: boolean;
      }[];
      readonly total: number;
      readonly found: number;
      /** Undefined if the page lists all undecided clients. */
      readonly search: string | undefined;
      /** The ids of clients that the user has chosen on an earlier page, and that this page does not list. */
      readonly others: readonly string[];
    };
  }
}

/** If an organization has more undecided clients than this, the page has a search for clients. */
const MAX_LISTED = 20;

interface Policy {
  /** `asksFirst` and `allowsApiKeys` are undefined if the form lacks the choice. */
  readonly asksFirst?: boolean | undefined;
  readonly allowsApiKeys?: boolean | undefined;
  /** The ids of the clients to approve; undefined before the form was sent. */
  readonly approved?: readonly string[];
  /** True if the client has not changed since the page showed it. */
  readonly isAsShown: IsAsShown;
  readonly search: string;
  /** True if the user has pressed the search button. The form is then shown again and not saved. */
  readonly isSearch: boolean;
}

export function policyRoutes(parts: DecidingParts): Route[] {
  const { kit, clientStandings, organizationEndings, organizationReach, marks, actor, urlOf } = parts;

  /** Ticks only chosen clients that have not changed since a page showed them. */
  async function draw(ctx: Context, typed: Policy, { notice, problems }: Said): Promise<void> {
    const { organization } = actor(ctx);
    const policy = await organizationReach.policyOf(organization.id);
    const { asksFirst = policy.asksFirst, allowsApiKeys = policy.allowsApiKeys, search, isAsShown } = typed;
    const clients = await organizationReach.forPage(accountOf(ctx).id, () =>
      allOf(organizationReach.of(organization.id).clients),
    );
    const undecided = new Map(clients.filter(isUndecided).map((client) => [client.id, client]));
    const approvable = await clientStandings.approvable([...undecided.keys()]);
    const countOf = ({ id }: ApprovableClient): number => undecided.get(id)?.count ?? 0;
    // Put the clients with the most users first, because only the first `MAX_LISTED` clients are ticked by default.
    const shown = approvable.toSorted((a, b) => countOf(b) - countOf(a) || collator.compare(a.name, b.name));
    const found = shown.filter((client) => containsText(textOf(client), search));
    const listed = found.slice(0, MAX_LISTED);
    const approved = new Set(typed.approved);
    const ticked = typed.approved ? shown.filter(({ id }) => approved.has(id)) : asksFirst ? [] : listed;
    const changed = ticked.filter((client) => !isAsShown(client));
    const chosen = ticked.filter(isAsShown);
    const others = chosen.filter((client) => !listed.includes(client));
    await kit.render(ctx, 'organization-policy', {
      name: organization.name,
      url: urlOf(organization),
      action: ctx.path,
      notice,
      problems: [...problems, ...(changed.length > 0 ? [{ message: changedText(changed) }] : [])],
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

  return formRoutes<Policy>(kit, {
    path: '/profile/organizations/:id/policy',
    admit: [parts.requireAdmin],
    isForEverybody: false,
    read: (form, ctx) => ({
      asksFirst: isFirst(form.get('clients'), 'ask', 'open'),
      allowsApiKeys: isFirst(form.get('api_keys'), 'allow', 'refuse'),
      approved: [...new Set(form.getAll('approve'))],
      isAsShown: marks.in(actor(ctx).organization.id, form),
      search: (form.get('find') ?? '').trim().slice(0, 200),
      isSearch: form.has('search'),
    }),
    stored: () => ({ search: '', isSearch: false, isAsShown: () => true }),
    draw,
    // A search shows the form again. Clients that are no longer listed stay chosen.
    check: (_ctx, { isSearch }) => (isSearch ? {} : undefined),
    async save(ctx, { asksFirst, allowsApiKeys, approved = [], isAsShown }) {
      const by = actor(ctx);
      const reach = organizationReach.of(by.organization.id);
      const named = await organizationReach.forPage(accountOf(ctx).id, () => reach.clientsNamed(approved));
      const chosen = named.filter(isUndecided);
      if (asksFirst === undefined || allowsApiKeys === undefined || chosen.length < approved.length) {
        return { said: [NOT_CHANGED] };
      }
      try {
        const policy = { asksFirst, allowsApiKeys };
        const isChanged = await organizationEndings.setPolicy(by, policy, asksFirst ? chosen : [], isAsShown);
        if (!isChanged) await parts.requireStillAdmin(ctx);
      } catch (error) {
        if (!(error instanceof Refusal) || error.code !== 'client_changed') throw error;
        return { status: 409, said: [NOT_CHANGED] };
      }
      return { url: urlOf(by.organization), said: message('organization-policy.saved') };
    },
  });
}

const isFirst = (value: string | null, first: string, second: string): boolean | undefined =>
  value === first || (value === second ? false : undefined);

const textOf = ({ name, ownerName, hosts }: ApprovableClient): string => [name, ownerName ?? '', ...hosts].join(' ');

const detailOf = ({ ownerName, hosts }: ApprovableClient, client?: ReachingClient): Message =>
  message('organization-policy.client', {
    maker: makerOf(ownerName),
    hosts: hosts.join(', '),
    people: client ? through(client) : '',
  });

/** Says which clients are no longer ticked because they have changed. */
function changedText(clients: readonly ApprovableClient[]): Message {
  const more = clients.length > MAX_NAMES ? ` +${clients.length - MAX_NAMES}` : '';
  const names = clients.slice(0, MAX_NAMES).map(({ name }) => name);
  return message('organization-policy.changed', { count: clients.length, apps: `${names.join(', ')}${more}` });
}
