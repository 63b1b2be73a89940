/** `/profile/security/ways`: how a person signs in, with more ways to add, and to remove. */
import type { Context } from 'koa';
import { formOf } from '../provider/form.ts';
import { originInSession, seeOther } from './page.ts';
import { get, type PageParts, post, type Route } from './routes.ts';
import type { WayIn } from './sign-in/upstream-ways.ts';
import { accountOf } from './signed-in.ts';
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
    /** It may be removed: something else lets them in. */
    readonly isSpare: boolean;
  }[];
  /** Providers that they may link. */
  readonly linkable: readonly WayIn[];
  readonly linkUrl: string;
  readonly removeUrl: string;
  /** Where they may choose a password once it is confirmed that it is them; empty where nowhere. */
  readonly resetWith: readonly WayIn[];
  readonly resetUrl: string;
}

const WAYS = '/profile/security/ways';
const REMOVE = `${WAYS}/remove`;
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
        isSpare: keepsPassword || counting.some((other) => other.id !== id),
      })),
    linkable: upstream.ways.filter(({ id }) => !linked.some((way) => way.id === id)),
    resetWith: passwords ? linked : [],
    linkUrl: WAYS,
    removeUrl: REMOVE,
    resetUrl: RESET,
  };
}

/** @param page where they stand. */
export function signInWaysRoutes(parts: PageParts, page: string): Route[] {
  const { host, upstream, waysIn, sessions, steps } = parts;
  const { requireSignedIn, ownForm, requireRecentSignIn } = steps;

  /** The session here goes on, and is looked for when they are back. */
  const link = (ctx: Context): Promise<void> =>
    upstream.begin(ctx, formOf(ctx).get('link_with') ?? '', {
      target: page,
      links: accountOf(ctx).id,
      isFresh: true,
    });

  async function remove(ctx: Context): Promise<void> {
    const account = accountOf(ctx);
    const id = formOf(ctx).get('remove_way') ?? '';
    const way = (await waysIn.of(account.id)).find((one) => one.id === id);
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

  const back = (ctx: Context): void => seeOther(ctx, `${page}${ctx.search}`);
  const ways = [
    get(WAYS, requireSignedIn, back),
    post(WAYS, ...ownForm(), requireRecentSignIn, link),
    get(REMOVE, requireSignedIn, back),
    post(REMOVE, ...ownForm(), requireRecentSignIn, remove),
  ];
  const resets = [get(RESET, requireSignedIn, back), post(RESET, ...ownForm(), reset)];
  return [...ways, ...(parts.passwords && upstream.ways.length > 0 ? resets : [])];
}
