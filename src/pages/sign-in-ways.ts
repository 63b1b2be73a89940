/** `/profile/security/ways`: how a person signs in, with more ways to add, and to remove. */
import type { Context } from 'koa';
import type { WayHeld } from '../accounts/ways-in.ts';
import { formOf } from '../provider/form.ts';
import { originInSession, seeOther } from './page.ts';
import { get, type PageParts, post, type Route } from './routes.ts';
import type { WayIn } from './sign-in/upstream-ways.ts';
import { accountOf, typedOf } from './signed-in.ts';
import { fromOf } from './words/browser.ts';
import { type Moment, momentOf } from './words/moment.ts';

export interface WaysView {
  /** There are passwords, and they have one or nothing else. */
  readonly hasPassword: boolean;
  readonly held: readonly {
    readonly id: string;
    readonly label: string;
    readonly added: Moment;
    readonly lastUsed: Moment | undefined;
    readonly isUnused: boolean;
    /** The page that asks before it is removed; absent for the only way that lets them in. */
    readonly removeUrl: string | undefined;
  }[];
  /** Providers that they may link. */
  readonly linkable: readonly WayIn[];
  readonly linkUrl: string;
  /** Where they may choose a password once it is confirmed that it is them; empty where nowhere. */
  readonly resetWith: readonly WayIn[];
  readonly resetUrl: string;
}

const WAYS = '/profile/security/ways';
const REMOVE = `${WAYS}/remove`;
/** The linked provider to remove: a parameter of the page that asks, and a field of its form. */
const REMOVED_FIELD = 'remove_way';
const RESET = '/profile/security/password/reset';
const LAST = 'It is the only way that lets you in, so it stays. Add another one first.';
const removed = (label: string): string =>
  `${label} lets nobody in to your account any more, and every other browser is signed out.`;

/** What the security page says of it. */
export async function waysView(ctx: Context, parts: PageParts): Promise<WaysView> {
  const { host, waysIn, upstream, passwords } = parts;
  const account = accountOf(ctx);
  // Its forms can end at a provider, and wherever that leads on to.
  if (upstream.ways.length > 0) await host.pageToClient(ctx, async () => {});
  const [held, linked] = await Promise.all([waysIn.of(account.id), upstream.waysOf(account)]);
  const counting = held.filter(({ isUnused }) => !isUnused);
  const keepsPassword = passwords && account.hasPassword;
  return {
    hasPassword: passwords && (account.hasPassword || counting.length === 0),
    // Passkeys have a place of their own on the page.
    held: held
      .filter(({ kind }) => kind === 'provider')
      .map(({ id, label, addedAt, lastUsedAt, isUnused }) => ({
        id,
        label,
        isUnused,
        added: momentOf(addedAt),
        lastUsed: lastUsedAt && momentOf(lastUsedAt),
        removeUrl:
          isUnused || keepsPassword || counting.some((other) => other.id !== id)
            ? `${REMOVE}?${new URLSearchParams({ [REMOVED_FIELD]: id })}`
            : undefined,
      })),
    linkable: upstream.ways.filter(({ id }) => !linked.some((way) => way.id === id)),
    resetWith: passwords ? linked : [],
    linkUrl: WAYS,
    resetUrl: RESET,
  };
}

/** @param page where they stand. */
export function signInWaysRoutes(parts: PageParts, page: string): Route[] {
  const { host, upstream, waysIn, sessions, steps } = parts;
  const { requireSignedIn, ownForm, requireRecentSignIn } = steps;

  const back = (ctx: Context): void => seeOther(ctx, `${page}${ctx.search}`);

  /** The session here goes on, and is looked for when they are back. */
  const link = (ctx: Context): Promise<void> =>
    upstream.begin(ctx, formOf(ctx).get('link_with') ?? '', {
      target: page,
      links: accountOf(ctx).id,
      isFresh: true,
    });

  const heldWay = async (ctx: Context, id: unknown): Promise<WayHeld | undefined> =>
    (await waysIn.of(accountOf(ctx).id)).find((way) => way.kind === 'provider' && way.id === id);

  async function askToRemove(ctx: Context): Promise<void> {
    const way = await heldWay(ctx, typedOf(ctx)?.get(REMOVED_FIELD) ?? ctx.query[REMOVED_FIELD]);
    if (!way) return back(ctx);
    await host.render(ctx, 'confirm', {
      section: 'security',
      question: 'Remove',
      subject: way.label,
      consequences: [
        'You can no longer sign in with it here, and every other browser is signed out.',
        'You can add it again when you are signed in.',
      ],
      action: REMOVE,
      fields: [{ name: REMOVED_FIELD, value: way.id }],
      button: 'Remove',
      cancel: page,
    });
  }

  async function remove(ctx: Context): Promise<void> {
    const account = accountOf(ctx);
    const id = formOf(ctx).get(REMOVED_FIELD) ?? '';
    const way = await heldWay(ctx, id);
    const origin = originInSession(ctx);
    const hasPassword = parts.passwords && account.hasPassword;
    const left = way && (await waysIn.remove(account.id, id, { origin, hasPassword }));
    if (left === 'last') return host.notices.tell(ctx, page, LAST);
    if (!left) return seeOther(ctx, page);
    await sessions.renew(ctx, left);
    parts.devices.remember(ctx, left);
    parts.mail?.tell(left.id, 'way_removed', { ...fromOf(ctx), about: way.label });
    await host.notices.tell(ctx, page, removed(way.label));
  }

  /** However recent the sign-in: a thief of the session may not change the password either. */
  const reset = (ctx: Context): Promise<void> =>
    upstream.begin(ctx, formOf(ctx).get('confirm_with') ?? '', {
      target: page,
      confirms: accountOf(ctx).id,
      resets: true,
      isFresh: true,
    });

  const ways = [
    get(WAYS, requireSignedIn, back),
    post(WAYS, ...ownForm(), requireRecentSignIn, link),
    get(REMOVE, requireSignedIn, askToRemove),
    post(REMOVE, ...ownForm(), requireRecentSignIn, remove),
  ];
  const resets = [get(RESET, requireSignedIn, back), post(RESET, ...ownForm(), reset)];
  return [...ways, ...(parts.passwords && upstream.ways.length > 0 ? resets : [])];
}
