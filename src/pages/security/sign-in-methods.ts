/** `/profile/security/ways`: adds and removes sign-in methods of a user. */
import type { Context } from 'koa';
import type { Passkeys } from '../../accounts/passkeys/passkeys.ts';
import type { LinkedMethod, SignInMethods } from '../../accounts/sign-in-methods.ts';
import { message } from '../../base/message.ts';
import { formOf } from '../../provider/form.ts';
import { endingRoutes } from '../ending.ts';
import { backToSecurity, originInSession, ownSession } from '../page.ts';
import type { PageKit } from '../page-kit.ts';
import { passkeyRows } from '../passkeys/passkeys.ts';
import { get, post, type Route, SECURITY } from '../routes.ts';
import type { BrowserSignIns } from '../sign-in/browser-sign-ins.ts';
import type { EnabledMethods } from '../sign-in/enabled-methods.ts';
import { accountOf, typedOf } from '../signed-in.ts';
import { toMoment } from '../words/moment.ts';

const WAYS = `${SECURITY}/ways`;
const REMOVE = `${WAYS}/remove`;
/** The id of the linked provider to remove: a query parameter and a form field of the confirmation page. */
const REMOVED_FIELD = 'remove_way';
const RESET = `${SECURITY}/password/reset`;

export type SignInMethodsPart = ReturnType<typeof createSignInMethodsPart>;

export function createSignInMethodsPart(parts: {
  readonly kit: PageKit;
  readonly enabled: Pick<EnabledMethods, 'passwords' | 'upstream' | 'passkeys'>;
  readonly signInMethods: Pick<SignInMethods, 'of' | 'remove'>;
  readonly passkeys: Pick<Passkeys, 'of'>;
  readonly signIns: Pick<BrowserSignIns, 'keep'>;
}) {
  const { kit, enabled, signInMethods, passkeys, signIns } = parts;
  const { passwords, upstream } = enabled;

  /** Returns the data for the security page; `passkeys` is undefined for a service without passkeys. */
  async function view(ctx: Context) {
    const account = accountOf(ctx);
    // The forms of the page can redirect to a provider, which can redirect to any site.
    if (upstream.providers.length > 0) await kit.pageToClient(ctx, async () => {});
    const [held, linked, own] = await Promise.all([
      signInMethods.of(account.id),
      upstream.listMethods(account),
      enabled.passkeys && passkeys.of(account.id),
    ]);
    const usable = held.filter(({ isDisabled }) => !isDisabled);
    const keepsPassword = passwords && account.hasPassword;
    const methods = {
      /** True also for a user who has no password yet and no other usable method. */
      hasPassword: passwords && (account.hasPassword || usable.length === 0),
      // The page lists passkeys in another section.
      held: held
        .filter(({ kind }) => kind === 'provider')
        .map(({ id, label, addedAt, lastUsedAt, isDisabled }) => ({
          id,
          label,
          isDisabled,
          added: toMoment(addedAt),
          lastUsed: lastUsedAt && toMoment(lastUsedAt),
          removeUrl:
            isDisabled || keepsPassword || usable.some((other) => other.id !== id)
              ? `${REMOVE}?${new URLSearchParams({ [REMOVED_FIELD]: id })}`
              : undefined,
        })),
      linkable: upstream.providers.filter(({ id }) => !linked.some((method) => method.id === id)),
      /** The providers at which the user can re-authenticate to choose a new password. */
      resetWith: passwords ? linked : [],
      linkUrl: WAYS,
      resetUrl: RESET,
    };
    const isOnlySignInMethod = usable.length === 1 && !keepsPassword;
    return { methods, passkeys: own && passkeyRows(own, { isOnlySignInMethod }) };
  }

  const removing = (kind: LinkedMethod['kind'], path: string, idIn: (ctx: Context) => unknown): Route[] =>
    endingRoutes<LinkedMethod>(kit, {
      path,
      find: async (ctx) =>
        (await signInMethods.of(accountOf(ctx).id)).find((method) => method.kind === kind && method.id === idIn(ctx)),
      ask: (_ctx, { id, label }) => ({
        section: 'security',
        heading: message('security.remove-heading', { method: label }),
        consequences:
          kind === 'passkey'
            ? [message('passkey.remove-consequence')]
            : [message('security.remove-consequence'), message('security.remove-add-again')],
        fields: [{ name: REMOVED_FIELD, value: id }],
        button: message('security.remove'),
      }),
      async end(ctx, { id, label: about }) {
        const left = await signInMethods.remove(accountOf(ctx).id, id, { origin: originInSession(ctx), passwords });
        if (!left) return undefined;
        if (left === 'last') return { said: message('security.only-method') };
        const [what, said] =
          kind === 'passkey'
            ? (['passkey_removed', message('passkey.removed')] as const)
            : (['method_removed', message('security.method-removed', { method: about })] as const);
        await signIns.keep(ctx, left, { what, about });
        return { said };
      },
      already: message('security.already-removed'),
      back: () => SECURITY,
    });

  /** Returns the provider that is named in the form, in the form stored before a sign-in, or in the query. */
  const providerIn = (ctx: Context): unknown =>
    (ctx.method === 'POST' ? formOf(ctx) : typedOf(ctx))?.get(REMOVED_FIELD) ?? ctx.query[REMOVED_FIELD];

  /** Redirects to the provider that the form names. The session is checked again when the user returns. */
  const begin = (to: 'link' | 'reset', field: string) => (ctx: Context) =>
    upstream.begin(ctx, formOf(ctx).get(field) ?? '', { to, target: SECURITY, ...ownSession(ctx) });

  const linking = [
    get(WAYS, kit.requireSignedIn, backToSecurity),
    post(WAYS, ...kit.ownForm(), kit.requireRecentSignIn, begin('link', 'link_with')),
    ...removing('provider', REMOVE, providerIn),
    ...(enabled.passkeys ? removing('passkey', `${SECURITY}/passkeys/:id/remove`, (ctx) => ctx.params.id) : []),
  ];
  const resets = [
    get(RESET, kit.requireSignedIn, backToSecurity),
    // Require the re-authentication even after a recent sign-in, because a stolen session must not change the password.
    post(RESET, ...kit.ownForm(), begin('reset', 'confirm_with')),
  ];
  return { view, routes: [...linking, ...(passwords && upstream.providers.length > 0 ? resets : [])] };
}
