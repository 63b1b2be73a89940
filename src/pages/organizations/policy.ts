/** Pages on which owners and admins set their organization's policy and decide about clients. */
import type { Context } from 'koa';
import { type Organization, RIGHTS } from '../../accounts/access/reach.ts';
import { visibleText } from '../../accounts/display-name.ts';
import type { ApprovableClient, ClientStandings } from '../../authorizations/client-standing.ts';
import type { ActingAdmin, IsAsShown, OrganizationEndings } from '../../authorizations/organization-endings.ts';
import { allOf, isUndecided, type OrganizationReach } from '../../authorizations/organization-reach.ts';
import type { ReachingClient } from '../../authorizations/reaching.ts';
import type { Clock } from '../../base/clock.ts';
import { type Message, message, type Text } from '../../base/message.ts';
import { holdsSecret } from '../../base/random-id.ts';
import { Refusal } from '../../base/refusal.ts';
import type { Seals } from '../../base/seals.ts';
import { formOf } from '../../provider/form.ts';
import type { PageKit } from '../page-kit.ts';
import { accountOf, NOTHING_SENT, typedOf } from '../signed-in.ts';
import { describeStanding, linksOf } from '../words/client-standing.ts';
import { momentOrNothing } from '../words/moment.ts';
import { makerOf, through } from './reach-parts.ts';

const MAX_SENTENCE_LENGTH = 200;
/** How many warehouses the page of a decision names. */
const MAX_WAREHOUSES = 9;
/** The hidden field with a mark of each client that the page showed. */
const SHOWN_FIELD = 'shown';
/** Characters of a mark, of which only this service can make one: more would make long forms. */
const MARK_LENGTH = 16;
const NOT_CHANGED = message('organization-policy.not-changed');

/** The fields of a submitted policy form. */
interface Policy {
  readonly clients: string | null;
  readonly apiKeys: string | null;
  /** The ids of the clients to approve. */
  readonly approved: readonly string[];
}

export function createPolicySteps(parts: {
  readonly kit: PageKit;
  readonly clock: Clock;
  readonly clientStandings: Pick<ClientStandings, 'find' | 'approvable'>;
  readonly organizationEndings: OrganizationEndings;
  readonly organizationReach: OrganizationReach;
  readonly seals: Pick<Seals, 'macsOf'>;
  /** Returns the user, and the organization that the path names. */
  readonly actor: (ctx: Context) => ActingAdmin;
  readonly warehousesOf: (ctx: Context) => Organization['warehouses'];
  readonly urlOf: (organization: { readonly id: string }) => string;
}) {
  const { kit, clock, clientStandings, organizationEndings, actor, warehousesOf, urlOf } = parts;
  const { organizationReach } = parts;

  /** Returns the marks of the client under all keys, the current one first. */
  const marksOf = (ctx: Context, { links: _, ...client }: ApprovableClient): string[] =>
    parts.seals
      // Not the links, which change no earlier approval either.
      .macsOf(JSON.stringify(['approval', actor(ctx).organization.id, client]))
      .map((mac) => mac.slice(0, MARK_LENGTH));

  /** Compares clients with the marks in the sent form: an approval is of what the page showed. */
  function asShown(ctx: Context): IsAsShown {
    const marks = new Set((formOf(ctx).get(SHOWN_FIELD) ?? '').split('.'));
    return (client) => marksOf(ctx, client).some((mark) => marks.has(mark));
  }

  async function draw(ctx: Context, sent?: Policy, problem?: Text): Promise<void> {
    const { organization } = actor(ctx);
    const { asksFirst, allowsApiKeys } = await organizationReach.policyOf(organization.id);
    const clients = await organizationReach.forPage(accountOf(ctx).id, () =>
      allOf(organizationReach.of(organization.id).clients),
    );
    const undecided = new Map(clients.filter(isUndecided).map((client) => [client.id, client]));
    const shown = await clientStandings.approvable([...undecided.keys()]);
    await kit.render(ctx, 'organization-policy', {
      name: organization.name,
      url: urlOf(organization),
      action: ctx.path,
      problem: problem ?? (sent && NOTHING_SENT),
      asksFirst: sent ? sent.clients === 'ask' : asksFirst,
      allowsApiKeys: sent ? sent.apiKeys === 'allow' : allowsApiKeys,
      shown: shown.map((client) => marksOf(ctx, client)[0]).join('.'),
      clients: shown.map((client) => ({
        id: client.id,
        name: client.name,
        detail: detailOf(client, undecided.get(client.id)),
        // When the organization begins to ask first, connected clients keep their access by default.
        isChosen: sent ? sent.approved.includes(client.id) : !asksFirst,
      })),
    });
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
      await organizationEndings.setPolicy(by, policy, approving, asShown(ctx));
    } catch (error) {
      if (!(error instanceof Refusal) || error.code !== 'client_changed') throw error;
      ctx.status = 409;
      return draw(ctx, { ...sent, approved: [] }, NOT_CHANGED);
    }
    await kit.notices.redirect(ctx, urlOf(by.organization), message('organization-policy.saved'));
  }

  /** Returns the client that the path names; undefined (a 404) if it is blocked or not connected. */
  async function clientIn(ctx: Context): Promise<ReachingClient | undefined> {
    const reach = organizationReach.of(actor(ctx).organization.id);
    const clients = await reach.clientsNamed([`${ctx.params.client}`]);
    return clients.find(({ kind, state }) => kind !== 'machine' && state !== 'blocked');
  }

  async function drawDecision(ctx: Context, sentence: string, problem?: Text): Promise<void> {
    const client = await clientIn(ctx);
    if (!client) return;
    const { organization } = actor(ctx);
    const [[shown], standing, reached] = await Promise.all([
      clientStandings.approvable([client.id]),
      clientStandings.find(client.id, accountOf(ctx).id),
      organizationReach.of(organization.id).rightsThrough(client.id),
    ]);
    if (!shown) return;
    const inWords = kit.rightsInWords(ctx);
    const warehouses = warehousesOf(ctx).flatMap(({ id, name }) => {
      const rights = reached.get(id);
      return rights ? [{ name, rights: inWords(RIGHTS.filter((right) => rights.has(right))) }] : [];
    });
    await kit.render(ctx, 'organization-decision', {
      shown: marksOf(ctx, shown).slice(0, 1).join(),
      name: shown.name,
      hosts: shown.hosts.join(', '),
      organization: organization.name,
      url: urlOf(organization),
      action: ctx.path,
      ownerName: shown.ownerName ?? undefined,
      warehouses: warehouses.slice(0, MAX_WAREHOUSES),
      otherWarehouses: Math.max(0, warehouses.length - MAX_WAREHOUSES),
      links: linksOf(shown),
      standing: standing && describeStanding(standing, clock()),
      wantedBy: through(client),
      requested: momentOrNothing(client.requestedAt),
      problem,
      sentence,
      maxLength: MAX_SENTENCE_LENGTH,
    });
  }

  async function decide(ctx: Context): Promise<void> {
    const client = await clientIn(ctx);
    if (!client) return;
    const form = formOf(ctx);
    const by = actor(ctx);
    const typed = form.get('sentence') ?? '';
    const sentence = holdsSecret(typed) ? undefined : visibleText(typed);
    const decision = form.get('decision');
    if (decision === 'decline' && typed.trim() !== '' && sentence === undefined) {
      ctx.status = 422;
      const problem = holdsSecret(typed)
        ? message('names.secret')
        : message('organization-decision.too-long', { max: MAX_SENTENCE_LENGTH });
      return drawDecision(ctx, typed, problem);
    }
    const decisions = {
      approve: () => organizationEndings.approve(by, client, asShown(ctx)),
      decline: () => organizationEndings.decline(by, client, sentence),
      block: () => organizationEndings.block(by, client),
    };
    const chosen = Object.hasOwn(decisions, decision ?? '') && (decision as keyof typeof decisions);
    let problem = NOT_CHANGED;
    try {
      if (chosen && (await decisions[chosen]())) {
        const said = message(`organization-decision.done-${chosen}`, { app: client.name });
        return await kit.notices.redirect(ctx, urlOf(by.organization), said);
      }
    } catch (error) {
      if (!(error instanceof Refusal && error.code === 'client_changed')) throw error;
      problem = message('organization-decision.changed');
    }
    ctx.status = 409;
    await drawDecision(ctx, typed, problem);
  }

  return {
    showPolicy: (ctx: Context): Promise<void> => {
      const typed = typedOf(ctx);
      return draw(ctx, typed && policyIn(typed));
    },
    savePolicy: save,
    askToDecide: (ctx: Context): Promise<void> => {
      const typed = typedOf(ctx);
      return drawDecision(ctx, typed?.get('sentence') ?? '', typed && NOTHING_SENT);
    },
    decide,
  };
}

const policyIn = (form: URLSearchParams): Policy => ({
  clients: form.get('clients'),
  apiKeys: form.get('api_keys'),
  approved: [...new Set(form.getAll('approve'))],
});

const detailOf = ({ ownerName, hosts }: ApprovableClient, client?: ReachingClient): Message =>
  message('organization-policy.client', {
    maker: makerOf(ownerName),
    hosts: hosts.join(', '),
    people: client ? through(client) : '',
  });
