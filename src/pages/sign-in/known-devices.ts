/** Recognizes the browsers of an account, so that failed attempts of attackers do not block the user's browsers. */
import type { Context } from 'koa';
import type { Account } from '../../accounts/account.ts';
import { type Clock, epochSeconds } from '../../base/clock.ts';
import { randomId } from '../../base/random-id.ts';
import { createSeals } from '../../base/seals.ts';
import { ownCookie } from '../own-cookie.ts';

export type KnownDevices = ReturnType<typeof createKnownDevices>;

const LIFETIME_SECONDS = 180 * 86_400;
/** Maximum number of accounts in the cookie of a browser. The account with the oldest sign-in is dropped. */
const MAX_ACCOUNTS = 5;
const ENTRY = /^(acc_[A-Za-z0-9_-]{16})\.([A-Za-z0-9_-]{22})\.(\d{1,12})\.([A-Za-z0-9_-]{43})$/;

/**
 * OWASP's device cookies, which contain an account, a nonce, a time and a MAC. The MAC also covers the session
 * generation of the account, so the cookie becomes invalid when the password is changed or all sessions are ended.
 */
export function createKnownDevices(parts: {
  issuer: string;
  /** The first key signs, and all keys verify. */
  keys: readonly [string, ...string[]];
  clock: Clock;
  isShared: (address: string) => boolean;
}) {
  const { issuer, keys, clock, isShared } = parts;
  const cookie = ownCookie(issuer, 'device');

  const seals = createSeals('device', keys);
  const withGeneration = (said: string, { sessionGeneration }: Account): string => `${said}.${sessionGeneration}`;

  // Ignore the cookie on a shared terminal, because it may belong to another user.
  const entriesOf = (ctx: Context) =>
    ((!isShared(ctx.ip) && cookie.get(ctx)) || '').split('~', MAX_ACCOUNTS).flatMap((text) => {
      const [, accountId = '', nonce = '', since = '', mac = ''] = ENTRY.exec(text) ?? [];
      return accountId ? [{ text, accountId, nonce, since: Number(since), mac }] : [];
    });

  return {
    /** Call this after each authentication, with any method. */
    remember(ctx: Context, account: Account): void {
      if (isShared(ctx.ip)) return;
      const said = `${account.id}.${randomId('', 22)}.${epochSeconds(clock)}`;
      const entry = `${said}.${seals.macOf(withGeneration(said, account))}`;
      const others = entriesOf(ctx).filter(({ accountId }) => accountId !== account.id);
      const kept = [entry, ...others.map(({ text }) => text)].slice(0, MAX_ACCOUNTS);
      cookie.set(ctx, kept.join('~'), LIFETIME_SECONDS);
    },

    /** True if the browser has sent a device cookie for any account. Its MAC is not verified. */
    claims: (ctx: Context): boolean => entriesOf(ctx).length > 0,

    /** Returns an identifier of this browser, if its cookie for the account is valid. */
    find(ctx: Context, account: Account): string | undefined {
      const entry = entriesOf(ctx).find(({ accountId }) => accountId === account.id);
      if (!entry || entry.since + LIFETIME_SECONDS <= epochSeconds(clock)) return undefined;
      const said = `${account.id}.${entry.nonce}.${entry.since}`;
      return seals.isMacOf(entry.mac, withGeneration(said, account)) ? entry.nonce : undefined;
    },
  };
}
