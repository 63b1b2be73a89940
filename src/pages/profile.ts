/** `/profile`: the start page of a user, with the apps and API keys that act for them, and their recent activity. */
import type { Context } from 'koa';
import type { Access } from '../accounts/access/access.ts';
import { isAdmin } from '../accounts/access/reach.ts';
import type { Activity } from '../accounts/activity/activity.ts';
import type { ApiKeys } from '../accounts/api-keys/api-keys.ts';
import type { SignInMethods } from '../accounts/sign-in-methods.ts';
import type { Connections } from '../authorizations/connections.ts';
import { type ActivityEntry, describeActivity } from './activity.ts';
import { seeOther } from './page.ts';
import type { PageKit } from './page-kit.ts';
import { get, type Route, SECURITY } from './routes.ts';
import type { EnabledMethods } from './sign-in/enabled-methods.ts';
import { accountOf } from './signed-in.ts';
import { type Moment, momentOrNothing } from './words/moment.ts';
import { describeReached, type ReachedOrganization } from './words/reached.ts';

declare module './view-data.ts' {
  interface ViewData {
    readonly profile: {
      /** The strongest sign-in method of the user. */
      readonly signInBy: 'passkey' | 'provider' | 'password' | 'nothing';
      /** The name of the passkey or provider; empty if `signInBy` is `password` or `nothing`. */
      readonly methodName: string;
      /** Undefined if the page does not propose a passkey. */
      readonly addPasskeyUrl: string | undefined;
      /** The apps and API keys with the latest uses. */
      readonly acting: readonly {
        readonly kind: 'connections' | 'api-keys';
        readonly href: string;
        readonly name: string;
        readonly isSuspended: boolean;
        readonly lastUsed: Moment | undefined;
      }[];
      readonly counts: { readonly apps: number; readonly keys: number };
      readonly entries: readonly ActivityEntry[];
      readonly organizations: readonly ReachedOrganization[];
    };
  }
}

const PATH = '/profile';
const MAX_ACTING = 5;
const MAX_ENTRIES = 3;

export function profilePage(parts: {
  readonly kit: PageKit;
  readonly access: Access;
  readonly activity: Pick<Activity, 'of'>;
  readonly apiKeys: Pick<ApiKeys, 'isActive' | 'listOf'>;
  readonly connections: Pick<Connections, 'listOf'>;
  readonly enabled: Pick<EnabledMethods, 'passwords' | 'passkeys'>;
  readonly signInMethods: Pick<SignInMethods, 'of'>;
}): Route[] {
  const { kit, access, activity, apiKeys, connections, enabled, signInMethods } = parts;

  async function show(ctx: Context): Promise<void> {
    const { id: accountId, hasPassword } = accountOf(ctx);
    const [organizations, connected, keys, methods, entries] = await Promise.all([
      access.accessOf({ accountId }),
      connections.listOf(accountId),
      apiKeys.listOf(accountId),
      signInMethods.of(accountId),
      activity.of(accountId, { limit: MAX_ENTRIES }),
    ]);
    const canUsePassword = enabled.passwords && hasPassword;
    const usable = methods.filter(({ isDisabled }) => !isDisabled);
    const best =
      usable.find(({ kind }) => kind === 'passkey') ?? usable.find(({ isStrong }) => isStrong || !canUsePassword);
    const activeKeys = keys.filter(apiKeys.isActive);
    const acting = [
      ...connected.map((app) => ({
        ...app,
        kind: 'connections' as const,
        href: `${PATH}/connections/${app.clientId}`,
      })),
      ...activeKeys.map((key) => ({ ...key, kind: 'api-keys' as const, href: `${PATH}/api-keys`, isSuspended: false })),
    ].toSorted((a, b) => (b.lastUsedAt?.getTime() ?? 0) - (a.lastUsedAt?.getTime() ?? 0));
    await kit.render(ctx, 'profile', {
      signInBy: best?.kind ?? (canUsePassword ? 'password' : 'nothing'),
      methodName: best?.label ?? '',
      addPasskeyUrl: best || !enabled.passkeys ? undefined : `${SECURITY}/passkeys/new`,
      acting: acting.slice(0, MAX_ACTING).map(({ kind, href, name, isSuspended, lastUsedAt }) => ({
        kind,
        href,
        name,
        isSuspended,
        lastUsed: momentOrNothing(lastUsedAt),
      })),
      counts: { apps: connected.length, keys: activeKeys.length },
      entries: entries.map((record) => describeActivity(record, kit.rightsInWords(ctx))),
      organizations: organizations.map((one) => {
        const urlOf = ({ id }: { readonly id: string }) => `${PATH}/organizations/${one.id}?warehouse=${id}`;
        return describeReached(one, kit.rightsInWords(ctx), isAdmin(one.role) ? urlOf : undefined);
      }),
    });
  }

  const toProfile = (ctx: Context): void => seeOther(ctx, PATH);
  return [get('/', toProfile), get(PATH, kit.requireSignedIn, show)];
}
