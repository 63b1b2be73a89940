/** `/profile/organizations`: a user's organizations; owners and admins see and end access. */
import type { Context, Next } from 'koa';
import type { Access } from '../../accounts/access/access.ts';
import type { Organization } from '../../accounts/access/reach.ts';
import { isAdmin } from '../../accounts/access/reach.ts';
import type { ClientStandings } from '../../authorizations/client-standing.ts';
import type { ActingAdmin, OrganizationEndings } from '../../authorizations/organization-endings.ts';
import type { OrganizationReach } from '../../authorizations/organization-reach.ts';
import type { Clock } from '../../base/clock.ts';
import { type Message, message, type Text } from '../../base/message.ts';
import { Refusal } from '../../base/refusal.ts';
import { requestState } from '../../base/request-state.ts';
import type { Seals } from '../../base/seals.ts';
import { isUnknown } from '../../texts/texts.ts';
import { byText, type ListForm, listOf } from '../lists.ts';
import { originInSession } from '../page.ts';
import type { PageKit } from '../page-kit.ts';
import { get, post, type Route } from '../routes.ts';
import { accountOf } from '../signed-in.ts';
import { createPolicySteps } from './policy.ts';
import { reachParts } from './reach-parts.ts';

const PATH = '/profile/organizations';
const ONE = `${PATH}/:id`;
const MEMBERSHIP = `${ONE}/people/:person/end`;
const BLOCK = `${ONE}/clients/:client/end`;
const UNBLOCK = `${ONE}/clients/:client/let-in`;
const DECIDE = `${ONE}/clients/:client/decide`;
const POLICY = `${ONE}/policy`;

const admin = requestState<Organization>('requireAdmin');

export function organizationsPage(parts: {
  readonly kit: PageKit;
  readonly clock: Clock;
  readonly access: Access;
  readonly clientStandings: Pick<ClientStandings, 'find' | 'approvable'>;
  readonly organizationEndings: OrganizationEndings;
  readonly organizationReach: OrganizationReach;
  readonly seals: Pick<Seals, 'macsOf'>;
}): Route[] {
  const { kit, access, organizationEndings, organizationReach } = parts;

  /** Continues for owners and admins (see `admin`); throws 404 for all other users. */
  async function requireAdmin(ctx: Context, next: Next): Promise<void> {
    const all = await access.accessOf({ accountId: accountOf(ctx).id });
    const organization = all.find(({ id }) => id === ctx.params.id);
    if (!organization || !isAdmin(organization.role)) {
      ctx.throw(404, 'no such organization of this person');
    }
    admin.set(ctx, organization);
    await next();
  }

  const actor = (ctx: Context): ActingAdmin => ({
    admin: { account: accountOf(ctx), origin: originInSession(ctx) },
    organization: admin.get(ctx),
  });

  async function list(ctx: Context): Promise<void> {
    const all = await access.accessOf({ accountId: accountOf(ctx).id });
    const { rows, list } = listOf(all, ctx.query, ORGANIZATIONS);
    await kit.render(ctx, 'organizations', {
      notice: await kit.notices.take(ctx),
      organizations: rows.map((organization) => ({
        name: organization.name,
        role: message(`roles.${organization.role}`),
        warehouses: organization.warehouses.length,
        url: isAdmin(organization.role) ? urlOf(organization) : undefined,
      })),
      list,
    });
  }

  async function draw(ctx: Context, problem?: Text): Promise<void> {
    const organization = admin.get(ctx);
    const url = urlOf(organization);
    const { id: accountId } = accountOf(ctx);
    const { query } = ctx;
    const { id: organizationId, warehouses } = organization;
    const warehouse = warehouses.find(({ id }) => id === query.warehouse);
    const inWords = kit.rightsInWords(ctx);
    const looking = { accountId, organization, warehouse, inWords, url, query };
    const [policy, parts] = await organizationReach.forPage(accountId, async () => {
      const policy = await organizationReach.policyOf(organizationId);
      const reach = organizationReach.of(organizationId, warehouse?.id);
      return [policy, await reachParts(policy, reach, looking)] as const;
    });
    await kit.render(ctx, 'organization', {
      name: organization.name,
      lead: message('organization.lead', { role: organization.role }),
      notice: await kit.notices.take(ctx),
      problem,
      ...policy,
      policyUrl: `${url}/policy`,
      url,
      warehouses: warehouses.map(({ id: value, name: label }) => ({
        value,
        label,
        isChosen: value === warehouse?.id,
      })),
      parts,
    });
  }

  const show = (ctx: Context): Promise<void> => draw(ctx);

  /** Returns the member that the path names; without one, undefined, and Koa answers 404. */
  const member = (ctx: Context) => organizationReach.of(admin.get(ctx).id).person(`${ctx.params.person}`);

  /** Returns the listed client that the path names, or undefined. */
  async function client(ctx: Context) {
    const reach = organizationReach.of(admin.get(ctx).id);
    return (await reach.clientsNamed([`${ctx.params.client}`]))[0];
  }

  /** @param end returns false if nothing changed; then Koa answers 404. */
  async function ending(
    ctx: Context,
    end: (by: ActingAdmin) => Promise<boolean>,
    said: Message,
    next = urlOf(admin.get(ctx)),
  ): Promise<void> {
    try {
      if (await end(actor(ctx))) await kit.notices.redirect(ctx, next, said);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      const refused = message(`organizations.refused-${error.code}`);
      if (isUnknown(refused)) throw error;
      ctx.status = 409;
      await draw(ctx, refused);
    }
  }

  async function askToEndMembership(ctx: Context): Promise<void> {
    const organization = admin.get(ctx);
    const person = await member(ctx);
    if (!person) return;
    const isSelf = person.id === accountOf(ctx).id;
    await kit.render(ctx, 'confirm', {
      section: 'organizations',
      heading: isSelf
        ? message('organizations.end-own-heading', { organization: organization.name })
        : message('organizations.end-heading', {
            person: person.name,
            organization: organization.name,
          }),
      ...(isSelf && {
        warning: message('organizations.end-own-warning'),
      }),
      consequences: [
        message('organizations.end-effect', { isSelf: String(isSelf) }),
        ...(organization.external_id === undefined ? [] : [message('organizations.end-imported')]),
      ],
      action: ctx.path,
      button: message('organizations.end'),
      cancel: urlOf(organization),
    });
  }

  async function endMembership(ctx: Context): Promise<void> {
    const person = await member(ctx);
    if (!person) return;
    const { id, name } = person;
    const { name: organization } = admin.get(ctx);
    const isSelf = id === accountOf(ctx).id;
    const said = isSelf
      ? message('organizations.ended-own', { organization })
      : message('organizations.ended', { person: name });
    const next = isSelf ? PATH : undefined;
    await ending(ctx, (by) => organizationEndings.endMembership(by, { id, name }), said, next);
  }

  async function askToBlock(ctx: Context): Promise<void> {
    const organization = admin.get(ctx);
    const found = await client(ctx);
    if (!found) return;
    await kit.render(ctx, 'confirm', {
      section: 'organizations',
      heading: message('organizations.block-heading', {
        app: found.name,
        organization: organization.name,
      }),
      consequences: [
        message('organizations.block-effect', { organization: organization.name }),
        message('organizations.block-people', { count: found.count }),
      ],
      action: ctx.path,
      button: message('organizations.block'),
      cancel: urlOf(organization),
    });
  }

  async function block(ctx: Context): Promise<void> {
    const found = await client(ctx);
    if (!found) return;
    const said = message('organizations.blocked', { app: found.name });
    await ending(ctx, (by) => organizationEndings.block(by, found), said);
  }

  async function askToUnblock(ctx: Context): Promise<void> {
    const organization = admin.get(ctx);
    const found = await client(ctx);
    if (!found) return;
    await kit.render(ctx, 'confirm', {
      section: 'organizations',
      heading: message('organizations.unblock-heading', {
        app: found.name,
        organization: organization.name,
      }),
      consequences: [message('organizations.unblock-effect')],
      action: ctx.path,
      button: message('organizations.unblock'),
      cancel: urlOf(organization),
    });
  }

  async function unblock(ctx: Context): Promise<void> {
    const found = await client(ctx);
    if (!found) return;
    await ending(
      ctx,
      (by) => organizationEndings.unblock(by, found),
      message('organizations.unblocked', { app: found.name }),
    );
  }

  const policy = createPolicySteps({ ...parts, actor, urlOf });
  const page = [kit.requireSignedIn, requireAdmin];
  const form = [...kit.ownForm(), requireAdmin, kit.requireRecentSignIn];
  return [
    get(PATH, kit.requireSignedIn, list),
    get(ONE, ...page, show),
    get(MEMBERSHIP, ...page, askToEndMembership),
    post(MEMBERSHIP, ...form, endMembership),
    get(BLOCK, ...page, askToBlock),
    post(BLOCK, ...form, block),
    get(UNBLOCK, ...page, askToUnblock),
    post(UNBLOCK, ...form, unblock),
    get(POLICY, ...page, policy.showPolicy),
    post(POLICY, ...form, policy.savePolicy),
    get(DECIDE, ...page, policy.askToDecide),
    post(DECIDE, ...form, policy.decide),
  ];
}

const ORGANIZATIONS: ListForm<Organization> = {
  path: PATH,
  idOf: ({ id }) => id,
  textOf: ({ name, role, warehouses }) => [name, role, ...warehouses.map((warehouse) => warehouse.name)].join(' '),
  orders: [
    byText('name', message('organizations.name'), ({ name }) => name),
    byText('role', message('organizations.role'), ({ role }) => role),
  ],
  filters: [{ name: 'charge', label: message('organizations.own'), has: ({ role }) => isAdmin(role) }],
};

const urlOf = ({ id }: Pick<Organization, 'id'>): string => `${PATH}/${id}`;
