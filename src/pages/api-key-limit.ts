/** `/profile/api-keys/:id/limit`: shows and limits what an API key of the user can access. */
import type { Context, Next } from 'koa';
import type { Access } from '../accounts/access/access.ts';
import { NO_LIMIT } from '../accounts/access/access-limit.ts';
import type { ApiKey } from '../accounts/api-keys/api-key.ts';
import type { ApiKeys } from '../accounts/api-keys/api-keys.ts';
import type { Clock } from '../base/clock.ts';
import { message } from '../base/message.ts';
import { requestState } from '../base/request-state.ts';
import { formRoutes, type Said } from './form-step.ts';
import { checkLimit, LIMITED, type LimitFields, limitFields, type TypedLimit, typedLimit } from './forms/limit-form.ts';
import { originInSession } from './page.ts';
import type { PageKit } from './page-kit.ts';
import type { Route } from './routes.ts';
import { accountOf } from './signed-in.ts';
import { describeReached, type ReachedOrganization } from './words/reached.ts';

declare module './view-data.ts' {
  interface ViewData {
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

const LIST = '/profile/api-keys';
const NO_SUCH = message('api-keys.no-such');

interface Typed {
  /** Undefined until the user has sent the form, and if the sent form contains no limit. */
  readonly limit: TypedLimit | undefined;
}

export function apiKeyLimitPage(parts: {
  readonly kit: PageKit;
  readonly clock: Clock;
  readonly access: Access;
  readonly apiKeys: Pick<ApiKeys, 'find' | 'limit'>;
}): Route[] {
  const { kit, clock, access, apiKeys } = parts;

  const ownKeys = requestState<ApiKey>('requireOwnKey');

  async function requireOwnKey(ctx: Context, next: Next): Promise<void> {
    const key = await apiKeys.find(accountOf(ctx).id, String(ctx.params.id));
    ownKeys.set(ctx, key);
    await (key ? next() : kit.notices.redirect(ctx, LIST, NO_SUCH));
  }

  return formRoutes<Typed>(kit, {
    path: `${LIST}/:id/limit`,
    admit: [requireOwnKey],
    isForEverybody: false,
    async read(form, ctx) {
      const all = await access.accessOf({ accountId: accountOf(ctx).id });
      return { limit: typedLimit(form, all, clock(), ownKeys.get(ctx)) };
    },
    stored: () => ({ limit: undefined }),
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
      return { url: LIST, said: isChanged ? LIMITED : NO_SUCH };
    },
  });
}
