/** `/profile/organizations`: lists the user's organizations. Owners and admins see who has access, and can end it. */
import type { ParsedUrlQuery } from 'node:querystring';
import type { Context, Next } from 'koa';
import type { Access } from '../../accounts/access/access.ts';
import type { Organization } from '../../accounts/access/reach.ts';
import { isAdmin } from '../../accounts/access/reach.ts';
import type { ReachingClient, ReachingPerson } from '../../authorizations/reaching.ts';
import { type Message, message, type Text } from '../../base/message.ts';
import { Refusal } from '../../base/refusal.ts';
import { requestState } from '../../base/request-state.ts';
import type { Seals } from '../../base/seals.ts';
import { isUnknown } from '../../texts/texts.ts';
import { type Ended, type Ending, endingRoutes } from '../ending.ts';
import { byText, containsText, type ListForm, type ListView, listOf, urlWith } from '../lists.ts';
import { originInSession } from '../page.ts';
import { get, type Route } from '../routes.ts';
import { accountOf } from '../signed-in.ts';
import { clientRoutes, createMarks, type DecidingParts } from './client.ts';
import { policyRoutes } from './policy.ts';
import { type ReachPart, reachParts } from './reach-parts.ts';

declare module '../view-data.ts' {
  interface ViewData {
    readonly organizations: {
      readonly notice: Text | undefined;
      readonly organizations: readonly ReturnType<typeof rowOf>[];
      readonly list: ListView;
    };
    readonly organization: {
      readonly name: string;
      readonly lead: Message;
      readonly notice: Text | undefined;
      readonly asksFirst: boolean;
      readonly allowsApiKeys: boolean;
      readonly policyUrl: string;
      readonly url: string;
      /** The URL that shows all lists of the organization, or of the chosen warehouse. */
      readonly allUrl: string;
      readonly warehouses: ReturnType<typeof warehouseFilter>;
      readonly parts: readonly ReachPart[];
    };
  }
}

const PATH = '/profile/organizations';
const ONE = `${PATH}/:id`;

const admin = requestState<Organization>('requireAdmin');

export function organizationsPage(
  parts: Omit<DecidingParts, 'marks' | 'requireAdmin' | 'requireStillAdmin' | 'actor' | 'urlOf'> & {
    readonly access: Access;
    readonly seals: Pick<Seals, 'macsOf'>;
  },
): Route[] {
  const { kit, clock, access, organizationEndings, organizationReach } = parts;

  async function requireAdmin(ctx: Context, next: Next): Promise<void> {
    const all = await access.accessOf({ accountId: accountOf(ctx).id });
    const organization = all.find(({ id }) => id === ctx.params.id);
    if (!organization || !isAdmin(organization.role)) ctx.throw(404, 'no such organization of this person');
    admin.set(ctx, organization);
    await next();
  }

  /** Must run before `requireAdmin`, which refuses users who have left the organization in another tab. */
  async function sayOwnEnded(ctx: Context, next: Next): Promise<void> {
    const own = accountOf(ctx).id;
    const all = ctx.params.person === own ? await access.accessOf({ accountId: own }) : undefined;
    if (!all || all.some(({ id }) => id === ctx.params.id)) return next();
    await kit.notices.redirect(ctx, PATH, message('organizations.already-ended-own'));
  }

  const actor: DecidingParts['actor'] = (ctx) => ({
    admin: { account: accountOf(ctx), origin: originInSession(ctx) },
    organization: admin.get(ctx),
  });

  async function list(ctx: Context): Promise<void> {
    const all = await access.accessOf({ accountId: accountOf(ctx).id });
    const { rows, list } = listOf(all, ctx.query, ORGANIZATIONS);
    await kit.render(ctx, 'organizations', {
      notice: await kit.notices.take(ctx),
      organizations: rows.map(rowOf),
      list,
    });
  }

  async function show(ctx: Context): Promise<void> {
    const organization = admin.get(ctx);
    const url = urlOf(organization);
    const { id: accountId } = accountOf(ctx);
    const { query } = ctx;
    const { id: organizationId, warehouses } = organization;
    const warehouse = warehouses.find(({ id }) => id === query.warehouse);
    const inWords = kit.rightsInWords(ctx);
    const looking = { accountId, organization, warehouse, inWords, url, query, now: clock() };
    const [policy, parts] = await organizationReach.forPage(accountId, async () => {
      const policy = await organizationReach.policyOf(organizationId);
      const reach = organizationReach.of(organizationId, warehouse?.id);
      return [policy, await reachParts(policy, reach, looking)] as const;
    });
    await kit.render(ctx, 'organization', {
      name: organization.name,
      lead: message('organization.lead', { role: organization.role }),
      notice: await kit.notices.take(ctx),
      ...policy,
      policyUrl: `${url}/policy`,
      url,
      allUrl: urlWith(url, warehouse ? { warehouse: warehouse.id } : {}),
      warehouses: warehouseFilter(organization, warehouse?.id, query, url),
      parts,
    });
  }

  /** Reads the role again, after a change was refused. @throws 404 if the user has just lost the role */
  async function requireStillAdmin(ctx: Context): Promise<void> {
    access.forget(accountOf(ctx).id);
    await requireAdmin(ctx, async () => {});
  }

  const ending = <Subject>(parts: Omit<Ending<Subject>, 'back'>): Route[] =>
    endingRoutes(kit, {
      admit: [requireAdmin],
      ...parts,
      async end(ctx, subject) {
        const ended = await parts.end(ctx, subject).catch(refused);
        if (!ended) await requireStillAdmin(ctx);
        return ended;
      },
      back(ctx) {
        const { warehouse } = ctx.params;
        return urlOf(admin.get(ctx)) + (warehouse === undefined ? '' : `?${new URLSearchParams({ warehouse })}`);
      },
    });

  const isSelf = (ctx: Context, { id }: Pick<ReachingPerson, 'id'>): boolean => id === accountOf(ctx).id;

  const endMembership = ending<Pick<ReachingPerson, 'id' | 'name'>>({
    path: `${ONE}/people/:person/end`,
    admit: [sayOwnEnded, requireAdmin],
    find: (ctx) => organizationReach.of(admin.get(ctx).id).person(`${ctx.params.person}`),
    ask(ctx, person) {
      const { name: organization, external_id } = admin.get(ctx);
      const isOwn = isSelf(ctx, person);
      return {
        section: 'organizations',
        heading: isOwn
          ? message('organizations.end-own-heading', { organization })
          : message('organizations.end-heading', { person: person.name, organization }),
        ...(isOwn && { warning: message('organizations.end-own-warning') }),
        consequences: [
          message('organizations.end-effect', { isSelf: String(isOwn) }),
          ...(external_id === undefined ? [] : [message('organizations.end-imported')]),
        ],
        button: message('organizations.end'),
      };
    },
    async end(ctx, person) {
      const { id, name } = person;
      if (!(await organizationEndings.endMembership(actor(ctx), { id, name }))) return undefined;
      return isSelf(ctx, person)
        ? { said: message('organizations.ended-own', { organization: admin.get(ctx).name }), url: PATH }
        : { said: message('organizations.ended', { person: name }) };
    },
    already: message('organizations.already-ended'),
  });

  /** Returns routes that block or unblock a client in an organization or a warehouse. */
  const deciding = (place: string, act: 'block' | 'unblock'): Route[] =>
    ending<{
      /** The client that the path names. */
      readonly client: ReachingClient;
      /** Undefined if the block applies to the whole organization. */
      readonly warehouse: Organization['warehouses'][number] | undefined;
      /** The name of the warehouse, or of the organization. */
      readonly place: string;
    }>({
      path: `${place}/clients/:client/${act === 'block' ? 'end' : 'let-in'}`,
      async find(ctx) {
        const { id, name, warehouses } = admin.get(ctx);
        const warehouse = warehouses.find((one) => one.id === ctx.params.warehouse);
        const [client] = await organizationReach.of(id, warehouse?.id).clientsNamed([`${ctx.params.client}`]);
        if (!client || (ctx.params.warehouse !== undefined && !warehouse)) return undefined;
        const isBlocked = warehouse ? client.isBlockedThere : client.isBlocked;
        return isBlocked === (act === 'block') ? undefined : { client, warehouse, place: warehouse?.name ?? name };
      },
      ask: (ctx, { client, warehouse, place }) => ({
        section: 'organizations',
        heading: message(`organizations.${act}-heading`, { app: client.name, organization: place }),
        consequences: (act === 'block' ? blockEffects : unblockEffects)(
          client,
          warehouse && admin.get(ctx).name,
          place,
        ),
        button: message(`organizations.${act}`),
      }),
      async end(ctx, { client, warehouse, place }) {
        if (!(await organizationEndings[act](actor(ctx), client, warehouse))) return undefined;
        return { said: message(`organizations.${act}ed`, { app: client.name, place }) };
      },
      already: message(`organizations.already-${act}ed`),
    });

  const deciders = { ...parts, marks: createMarks(parts.seals), actor, urlOf, requireAdmin, requireStillAdmin };
  return [
    get(PATH, kit.requireSignedIn, list),
    get(ONE, kit.requireSignedIn, requireAdmin, show),
    ...endMembership,
    ...[ONE, `${ONE}/warehouses/:warehouse`].flatMap((place) => [
      ...deciding(place, 'block'),
      ...deciding(place, 'unblock'),
    ]),
    ...policyRoutes(deciders),
    ...clientRoutes(deciders),
  ];
}

/** Returns the explanation of a refused change. @throws any error for which the page has no text */
function refused(error: unknown): Ended {
  if (!(error instanceof Refusal)) throw error;
  const text = message(`organizations.refused-${error.code}`);
  if (isUnknown(text)) throw error;
  return { status: 409, said: [text] };
}

/** If an organization has more warehouses than this, its page has a search for warehouses. */
const MAX_WAREHOUSES = 20;

/** Links to all warehouses. If there are many, the user must search; without a search, links only to the chosen one. */
function warehouseFilter({ warehouses }: Organization, chosen: string | undefined, query: ParsedUrlQuery, url: string) {
  const hasSearch = warehouses.length > MAX_WAREHOUSES;
  const search = hasSearch ? String(query.find ?? '').slice(0, 200) : '';
  const found = warehouses.filter(({ name }) => containsText(name, search));
  const present = found.filter(({ id }) => id === chosen);
  const names = ['show', 'q', 'only', 'order'] as const;
  const shown = Object.fromEntries(
    names.flatMap((name) => (typeof query[name] === 'string' && query[name] !== '' ? [[name, query[name]]] : [])),
  );
  const kept = { ...shown, ...(search !== '' && { find: search }) };
  const linked = hasSearch && search === '' ? warehouses.filter(({ id }) => id === chosen) : found;
  return {
    total: warehouses.length,
    found: found.length,
    /** Undefined if the page has links to all warehouses. */
    search: hasSearch ? search : undefined,
    /** Hidden fields that preserve the page's parameters. */
    kept: Object.entries(shown).map(([name, value]) => ({ name, value })),
    allUrl: urlWith(url, shown),
    links: [...new Set([...present, ...linked])].slice(0, MAX_WAREHOUSES).map(({ id, name }) => ({
      name,
      url: urlWith(url, { ...kept, warehouse: id }),
      isChosen: id === chosen,
    })),
    chosen: warehouses.find(({ id }) => id === chosen)?.name,
  };
}

/** @param organization the name of the organization, if the client is blocked only in one of its warehouses */
const blockEffects = (
  { count, kind, ownerName }: ReachingClient,
  organization: string | undefined,
  place: string,
): Message[] => [
  message('organizations.block-effect', { organization: place }),
  organization === undefined ? message('organizations.block-elsewhere') : message('organizations.block-only-there'),
  ...(organization !== undefined || ownerName === null
    ? []
    : [message('organizations.block-later', { maker: ownerName })]),
  ...(kind === 'machine' ? [] : [message('organizations.block-people', { count })]),
];

const unblockEffects = ({ isBlocked }: ReachingClient, organization: string | undefined): Message[] => [
  organization !== undefined && isBlocked
    ? message('organizations.unblock-still-blocked', { organization })
    : message('organizations.unblock-effect'),
];

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

const rowOf = (organization: Organization) => ({
  name: organization.name,
  role: message(`roles.${organization.role}`),
  /** How many warehouses of the organization the user can access. */
  warehouses: organization.warehouses.length,
  /** Undefined unless the user is the owner or an admin of the organization. */
  url: isAdmin(organization.role) ? urlOf(organization) : undefined,
});

const urlOf = ({ id }: Pick<Organization, 'id'>): string => `${PATH}/${id}`;
