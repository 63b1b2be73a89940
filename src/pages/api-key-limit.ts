/** `/profile/api-keys/:id/limit`: the places that one of the user's keys reaches, and its limit. */
import type { Context } from 'koa';
import type { Access } from '../accounts/access/access.ts';
import { NO_LIMIT } from '../accounts/access/access-limit.ts';
import type { ApiKey } from '../accounts/api-keys/api-key.ts';
import type { ApiKeys } from '../accounts/api-keys/api-keys.ts';
import type { Clock } from '../base/clock.ts';
import { message, type Text } from '../base/message.ts';
import { formOf } from '../provider/form.ts';
import {
  LIMITED,
  type LimitFields,
  limitFields,
  limitIn,
  placesIn,
  type TypedLimit,
  typedLimit,
} from './forms/limit-form.ts';
import { originInSession, seeOther } from './page.ts';
import type { PageKit } from './page-kit.ts';
import { get, post, type Route } from './routes.ts';
import { accountOf, NOTHING_SENT, typedOf } from './signed-in.ts';
import { describeReached, type ReachedOrganization } from './words/reached.ts';

declare module './view-data.ts' {
  interface ViewData {
    readonly 'api-key-limit': {
      readonly name: string;
      readonly masked: string;
      readonly notice: Text | undefined;
      readonly organizations: readonly ReachedOrganization[];
      /** The user's organizations that allow no API keys. */
      readonly refusing: readonly string[];
      readonly form: LimitFields;
      readonly action: string;
    };
  }
}

const LIST = '/profile/api-keys';

export function apiKeyLimitPage(parts: {
  readonly kit: PageKit;
  readonly clock: Clock;
  readonly access: Access;
  readonly apiKeys: Pick<ApiKeys, 'find' | 'limit'>;
}): Route[] {
  const { kit, clock, access, apiKeys } = parts;

  const ownKey = (ctx: Context): Promise<ApiKey | undefined> => apiKeys.find(accountOf(ctx).id, String(ctx.params.id));

  const sayNoSuch = (ctx: Context) => kit.notices.redirect(ctx, LIST, message('api-keys.no-such'));

  async function show(ctx: Context): Promise<void> {
    const key = await ownKey(ctx);
    await (key ? draw(ctx, key) : sayNoSuch(ctx));
  }

  async function draw(ctx: Context, key: ApiKey, refused?: TypedLimit): Promise<void> {
    const { accountId } = key;
    const [all, allowing, reached] = await Promise.all([
      access.accessOf({ accountId }),
      access.accessThrough(accountId, {}),
      access.accessThrough(accountId, { limit: key }),
    ]);
    const refusing = all.filter(({ id }) => allowing.every((one) => one.id !== id));
    const places = new Set(placesIn(all));
    const typed = refused ?? typedLimit(typedOf(ctx), (id) => places.has(id), clock());
    const limit = typed ?? { ...NO_LIMIT, places: key.places, isReadOnly: key.isReadOnly };
    const form = limitFields(all, limit, { now: clock(), hasEnd: false });
    await kit.render(ctx, 'api-key-limit', {
      name: key.name,
      masked: `gate_key_…${key.lastFour}`,
      notice: typedOf(ctx) && NOTHING_SENT,
      organizations: reached.map((one) => describeReached(one, kit.rightsInWords(ctx))),
      refusing: refusing.map(({ name }) => name),
      form: { ...form, isOpen: true },
      action: `${LIST}/${key.id}/limit`,
    });
  }

  async function save(ctx: Context): Promise<void> {
    const key = await ownKey(ctx);
    if (!key) return sayNoSuch(ctx);
    const places = new Set(placesIn(await access.accessOf({ accountId: key.accountId })));
    const typed = limitIn(formOf(ctx), (id) => places.has(id), clock());
    if (typed === undefined || typed === 'foreign') return seeOther(ctx, ctx.path);
    if (typed.problem !== undefined) {
      ctx.status = 422;
      return draw(ctx, key, typed);
    }
    const isChanged = await apiKeys.limit(key.accountId, key.id, typed, originInSession(ctx));
    await (isChanged ? kit.notices.redirect(ctx, LIST, LIMITED) : sayNoSuch(ctx));
  }

  return [
    get(`${LIST}/:id/limit`, kit.requireSignedIn, show),
    post(`${LIST}/:id/limit`, ...kit.ownForm(), kit.requireRecentSignIn, save),
  ];
}
