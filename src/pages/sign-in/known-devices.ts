/** The browsers in which an account has signed in: strangers cannot use up their attempts. */
import type { Context } from 'koa';
import type { Account } from '../../accounts/account.ts';
import { type Clock, epochSeconds } from '../../base/clock.ts';
import { randomId } from '../../base/random-id.ts';
import { createSeals } from '../../base/seals.ts';
import { ownCookie } from '../own-cookie.ts';

export type KnownDevices = ReturnType<typeof createKnownDevices>;

const LIFETIME = 180 * 86_400;
/** Accounts of one browser: that of the last sign-in first, the oldest is forgotten. */
const MOST_ACCOUNTS = 5;
const ENTRY = /^(acc_[A-Za-z0-9_-]{16})\.([A-Za-z0-9_-]{22})\.(\d{1,12})\.([A-Za-z0-9_-]{43})$/;

interface Entry {
  readonly text: string;
  readonly accountId: string;
  readonly nonce: string;
  readonly since: number;
  readonly mac: string;
}

/**
 * A device cookie as OWASP describes it: account, nonce and time under a MAC, which also covers the
 * generation of the account's sessions, so that a new password and signing out everywhere end it.
 */
export function createKnownDevices(parts: {
  issuer: string;
  /** The first signs, all are accepted. */
  keys: readonly [string, ...string[]];
  clock: Clock;
}) {
  const { issuer, keys, clock } = parts;
  const cookie = ownCookie(issuer, 'device');

  const seals = createSeals('device', keys);
  const withGeneration = (said: string, { sessionGeneration }: Account): string =>
    `${said}.${sessionGeneration}`;

  const entriesOf = (ctx: Context): Entry[] =>
    (cookie.get(ctx) ?? '').split('~', MOST_ACCOUNTS).flatMap((text) => {
      const [, accountId = '', nonce = '', since = '', mac = ''] = ENTRY.exec(text) ?? [];
      return accountId ? [{ text, accountId, nonce, since: Number(since), mac }] : [];
    });

  return {
    /** To be called with every proof of who it is: a password that was right, a one-time link, or a provider. */
    remember(ctx: Context, account: Account): void {
      const said = `${account.id}.${randomId('', 22)}.${epochSeconds(clock)}`;
      const entry = `${said}.${seals.macOf(withGeneration(said, account))}`;
      const others = entriesOf(ctx).filter(({ accountId }) => accountId !== account.id);
      const kept = [entry, ...others.map(({ text }) => text)].slice(0, MOST_ACCOUNTS);
      cookie.set(ctx, kept.join('~'), LIFETIME);
    },

    /** True if the browser sent a device cookie for any account. Proves nothing by itself. */
    claims: (ctx: Context): boolean => entriesOf(ctx).length > 0,

    /** The identifier of this browser, if it knows the account. */
    find(ctx: Context, account: Account): string | undefined {
      const entry = entriesOf(ctx).find(({ accountId }) => accountId === account.id);
      if (!entry || entry.since + LIFETIME <= epochSeconds(clock)) return undefined;
      const said = `${account.id}.${entry.nonce}.${entry.since}`;
      return seals.isMacOf(entry.mac, withGeneration(said, account)) ? entry.nonce : undefined;
    },
  };
}
