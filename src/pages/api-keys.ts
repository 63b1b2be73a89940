/** `/profile/api-keys`: creates, limits and revokes the personal API keys of a user. */
import type { Context, Next } from 'koa';
import type { Access } from '../accounts/access/access.ts';
import { isLimited, NO_LIMIT } from '../accounts/access/access-limit.ts';
import type { Organization } from '../accounts/access/reach.ts';
import { type ApiKey, lifetimesWithin } from '../accounts/api-keys/api-key.ts';
import type { ApiKeys } from '../accounts/api-keys/api-keys.ts';
import { displayName } from '../accounts/display-name.ts';
import type { AccountMail } from '../accounts/mail/account-mail.ts';
import type { OneTimeValues } from '../accounts/one-time-values.ts';
import type { Clock } from '../base/clock.ts';
import { message, type Text } from '../base/message.ts';
import { requestState } from '../base/request-state.ts';
import { formOf } from '../provider/form.ts';
import { endingRoutes } from './ending.ts';
import { formRoutes, type Said } from './form-step.ts';
import {
  checkLimit,
  describeLimit,
  LIMITED,
  type LimitFields,
  limitFields,
  type TypedLimit,
  typedLimit,
} from './forms/limit-form.ts';
import { newCreationKey, sentFormFrom } from './forms/sent-form.ts';
import { type ListForm, type ListView, listOf, usualOrders } from './lists.ts';
import { originInSession, requestOrigin } from './page.ts';
import type { PageKit } from './page-kit.ts';
import { get, type Route } from './routes.ts';
import { accountOf } from './signed-in.ts';
import type { FormProblem } from './view-data.ts';
import { momentOrNothing, toMoment } from './words/moment.ts';
import { describeReached, type ReachedOrganization } from './words/reached.ts';

declare module './view-data.ts' {
  interface ViewData {
    readonly 'api-keys': {
      readonly notice: Text | undefined;
      readonly keys: readonly (ReturnType<typeof rowOf> & { readonly isExpired: boolean })[];
      readonly list: ListView;
      /** The maximum number of keys per user. */
      readonly limit: number;
      /** Undefined if the user has the maximum number of keys. */
      readonly form: ReturnType<typeof formWith> | undefined;
    };
    readonly 'api-key-limit': Said & {
      readonly name: string;
      readonly masked: string;
      readonly organizations: readonly ReachedOrganization[];
      /** The names of the user's organizations that allow no API keys. */
      readonly refusing: readonly string[];
      readonly form: LimitFields;
      readonly action: string;
    };
  }
}

const PATH = '/profile/api-keys';
const NO_SUCH = message('api-keys.no-such');
/** The form value for a key that does not expire. */
const NO_EXPIRY = 'none';

interface Typed {
  readonly name: string;
  readonly expiresInDays: string | null;
  /** Undefined until the user has submitted the form. */
  readonly limit?: TypedLimit | undefined;
}

const KEYS: ListForm<ApiKey> = {
  path: PATH,
  idOf: ({ id }) => id,
  textOf: ({ name, lastFour }) => `${name} ${lastFour}`,
  orders: usualOrders(({ createdAt }) => createdAt),
};

export function apiKeysPage(parts: {
  readonly kit: PageKit;
  readonly clock: Clock;
  readonly access: Access;
  readonly apiKeys: ApiKeys;
  readonly oneTimeValues: OneTimeValues;
  readonly mail: AccountMail | undefined;
  readonly limits: Readonly<Record<'apiKeysPerPerson' | 'apiKeyDays', number>>;
}): Route[] {
  const { kit, clock, access, apiKeys, oneTimeValues, mail } = parts;
  const { apiKeysPerPerson: maxOfUser, apiKeyDays: maxDays } = parts.limits;
  const lifetimes = lifetimesWithin(maxDays).map(String);
  const usual = lifetimes.slice(0, 2).at(-1) ?? null;
  const expiries = [...lifetimes, ...(maxDays > 0 ? [] : [NO_EXPIRY])];

  async function draw(ctx: Context, typed: Typed, { notice, problems }: Said): Promise<void> {
    const accountId = accountOf(ctx).id;
    const [keys, reached] = await Promise.all([apiKeys.listOf(accountId), access.accessOf({ accountId })]);
    const limits = limitFields(reached, typed.limit ?? NO_LIMIT, { now: clock(), hasEnd: false });
    const hasRoom = keys.filter(apiKeys.isActive).length < maxOfUser;
    const { rows, list } = listOf(keys, ctx.query, {
      ...KEYS,
      filters: [
        { name: 'unused', label: message('lists.never-used'), has: ({ lastUsedAt }) => lastUsedAt === null },
        { name: 'expired', label: message('api-keys.expired'), has: (key) => !apiKeys.isActive(key) },
      ],
    });
    await kit.render(ctx, 'api-keys', {
      notice,
      keys: rows.map((key) => ({ ...rowOf(key, reached), isExpired: !apiKeys.isActive(key) })),
      list,
      limit: maxOfUser,
      form: hasRoom || problems.length > 0 ? formWith(typed, expiries, limits, problems) : undefined,
    });
  }

  const creating = formRoutes<Typed>(kit, {
    path: PATH,
    isForEverybody: true,
    async read(form, ctx) {
      const reached = await access.accessOf({ accountId: accountOf(ctx).id });
      return {
        name: form.get('name') ?? '',
        expiresInDays: form.get('expires_in_days'),
        limit: typedLimit(form, reached, clock()),
      };
    },
    stored: () => ({ name: '', expiresInDays: usual }),
    draw,
    fieldOf({ code }) {
      if (code === 'expiry_invalid') return { field: `expires-in-${lifetimes[0]}` };
      return code.startsWith('name_') ? { field: 'name' } : undefined;
    },
    check: (_ctx, { limit }) => (limit?.problem !== undefined ? { status: 422 } : undefined),
    async save(ctx, { name, expiresInDays, limit: chosen }) {
      const accountId = accountOf(ctx).id;
      const reach = chosen && { places: chosen.places, isReadOnly: chosen.isReadOnly };
      const limit = isLimited(reach ?? {}) ? [JSON.stringify(reach)] : [];
      const sent = sentFormFrom(formOf(ctx), [name, expiresInDays ?? '', ...limit]);
      const key = { accountId, name, expiresInDays: daysFrom(expiresInDays), maxOfUser, maxDays };
      const { id } = await apiKeys.addOnce(
        { ...key, ...(reach && { limit: reach }) },
        {
          key: sent.key,
          keep: (keyId, value) =>
            oneTimeValues.store(accountId, { name: displayName(name), value }, sent.shownAs(keyId)),
          made: (made) => mail?.notify(accountId, 'new_api_key', { origin: requestOrigin(ctx), about: made.name }),
        },
        originInSession(ctx),
      );
      return { url: `${PATH}/created?once=${sent.shownAs(id)}` };
    },
  });

  /** Shows the new key only once. */
  async function showCreated(ctx: Context): Promise<void> {
    const name = String(ctx.query.once ?? '');
    const made =
      // HEAD must not consume the one-time secret.
      ctx.method === 'GET'
        ? await oneTimeValues.take<{ name: string; value: string }>(accountOf(ctx).id, name)
        : undefined;
    await kit.render(ctx, 'secret-shown', {
      section: 'api-keys',
      heading: message(made ? 'api-keys.new' : 'api-keys.shown-already'),
      ...(made && {
        secret: {
          ...made,
          label: message('api-keys.key'),
          advice: message('api-keys.copy-now'),
        },
      }),
      remedy: message('api-keys.not-copied'),
      next: { href: PATH, label: message(made ? 'secrets.copied' : 'api-keys.go') },
    });
  }

  const revoking = endingRoutes<ApiKey>(kit, {
    path: `${PATH}/:id/revoke`,
    find: (ctx) => apiKeys.find(accountOf(ctx).id, String(ctx.params.id)),
    ask: (_ctx, { name, lastFour }) => ({
      section: 'api-keys',
      heading: message('api-keys.revoke-heading', { key: name }),
      consequences: [message('api-keys.revoke-effect', { lastFour })],
      button: message('api-keys.revoke'),
    }),
    async end(ctx, { id }) {
      const isRevoked = await apiKeys.revoke(accountOf(ctx).id, id, originInSession(ctx));
      return isRevoked ? { said: message('api-keys.revoked') } : undefined;
    },
    already: NO_SUCH,
    back: () => PATH,
  });

  const ownKeys = requestState<ApiKey>('requireOwnKey');

  async function requireOwnKey(ctx: Context, next: Next): Promise<void> {
    const key = await apiKeys.find(accountOf(ctx).id, String(ctx.params.id));
    ownKeys.set(ctx, key);
    await (key ? next() : kit.notices.redirect(ctx, PATH, NO_SUCH));
  }

  const limiting = formRoutes<{ readonly limit?: TypedLimit | undefined }>(kit, {
    path: `${PATH}/:id/limit`,
    admit: [requireOwnKey],
    isForEverybody: false,
    async read(form, ctx) {
      const all = await access.accessOf({ accountId: accountOf(ctx).id });
      return { limit: typedLimit(form, all, clock(), ownKeys.get(ctx)) };
    },
    stored: () => ({}),
    async draw(ctx, typed, said) {
      const key = ownKeys.get(ctx);
      const { accountId, places, isReadOnly } = key;
      const [all, allowing, reached] = await Promise.all([
        access.accessOf({ accountId }),
        access.accessThrough(accountId, {}),
        access.accessThrough(accountId, { limit: key }),
      ]);
      const refusing = all.filter(({ id }) => allowing.every((one) => one.id !== id));
      const limit = typed.limit ?? { ...NO_LIMIT, places, isReadOnly };
      const form = limitFields(all, limit, { now: clock(), hasEnd: false, stored: key });
      await kit.render(ctx, 'api-key-limit', {
        name: key.name,
        masked: `gate_key_…${key.lastFour}`,
        ...said,
        organizations: reached.map((one) => describeReached(one, kit.rightsInWords(ctx))),
        refusing: refusing.map(({ name }) => name),
        form: { ...form, isOpen: true },
        action: ctx.path,
      });
    },
    check: checkLimit(ownKeys.get),
    async save(ctx, { limit }) {
      const { accountId, id } = ownKeys.get(ctx);
      if (limit === undefined) return { url: ctx.path };
      const isChanged = await apiKeys.limit(accountId, id, limit, originInSession(ctx));
      return { url: PATH, said: isChanged ? LIMITED : NO_SUCH };
    },
  });

  return [...limiting, ...creating, get(`${PATH}/created`, kit.requireSignedIn, showCreated), ...revoking];
}

const rowOf = (key: ApiKey, reached: readonly Organization[]) => ({
  name: key.name,
  /** The beginning and the end of the key, as in `gate_key_…x7Qa`. */
  masked: `gate_key_…${key.lastFour}`,
  created: toMoment(key.createdAt),
  /** Undefined for a key that does not expire. */
  expires: momentOrNothing(key.expiresAt),
  /** Undefined for a key that was never used. */
  lastUsed: momentOrNothing(key.lastUsedAt),
  /** Undefined for a key without a limit. */
  limit: isLimited(key) ? describeLimit(key, reached) : undefined,
  limitUrl: `${PATH}/${key.id}/limit`,
  revokeUrl: `${PATH}/${key.id}/revoke`,
});

const formWith = (
  { name, expiresInDays }: Typed,
  expiries: readonly string[],
  limit: LimitFields,
  problems: readonly FormProblem[],
) => ({
  action: PATH,
  /** A hidden value that is unique to each rendered form. */
  creationKey: newCreationKey(),
  limit,
  name,
  expiries: expiries.map((value) => ({
    value,
    label: value === NO_EXPIRY ? message('api-keys.no-expiry') : message('api-keys.days', { days: Number(value) }),
    isChosen: value === expiresInDays,
  })),
  problems: limit.problem ? [...problems, { message: limit.problem }] : problems,
});

/** Returns undefined for a key without expiry, and NaN if the input is not a number of days. */
function daysFrom(entered: string | null): number | undefined {
  if (entered === NO_EXPIRY || entered === '') return undefined;
  return /^\d{1,4}$/.test(entered ?? '') ? Number(entered) : Number.NaN;
}
