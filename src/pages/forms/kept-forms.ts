/** Keeps what was typed for an hour: while the user signs in again, and for the Back button. */
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import type { Context } from 'koa';
import type { Logger } from 'pino';
import type { ShownOnce } from '../../accounts/shown-once.ts';
import type { AttemptLimit } from '../../base/attempt-limits.ts';
import { networkOf } from '../../base/network-address.ts';
import { randomId } from '../../base/random-id.ts';
import { ownCookie } from '../own-cookie.ts';

export interface KeptForms {
  /**
   * Keeps a value that is not secret, for this browser and this user.
   *
   * @param accountId undefined if no user is signed in or has to be.
   * @returns the name under which `look` finds it; undefined if it is not kept, which only costs
   *   convenience.
   */
  keep(ctx: Context, value: unknown, accountId: string | undefined): Promise<string | undefined>;
  /** Returns undefined if the value has expired, in another browser and for another user. */
  look<Value>(
    ctx: Context,
    name: unknown,
    accountId: string | undefined,
  ): Promise<Value | undefined>;
}

const NAME = /^[A-Za-z0-9_-]{43}$/;
/** Compressed characters: twice the page of a client with 20 redirect URIs and 100 problems. */
const MAX_LENGTH = 65_536;
/** If no user is signed in: three times such a page without what was typed into it. */
const MAX_ANONYMOUS_LENGTH = 8_192;

export function createKeptForms(parts: {
  readonly issuer: string;
  readonly shownOnce: ShownOnce;
  /** Limits forms per user, or per network if not signed in: no sender can fill the store. */
  readonly limit: AttemptLimit;
  readonly log: Logger;
}): KeptForms {
  const { issuer, shownOnce, limit, log } = parts;
  const cookie = ownCookie(issuer, 'browser');

  const browserOf = (ctx: Context): string | undefined => {
    const value = cookie.get(ctx);
    return value !== undefined && NAME.test(value) ? value : undefined;
  };

  function newBrowser(ctx: Context): string {
    const browser = randomId('', 43);
    cookie.set(ctx, browser);
    return browser;
  }

  async function kept(
    ctx: Context,
    value: unknown,
    accountId: string | undefined,
  ): Promise<string | undefined> {
    const packed = (await pack(JSON.stringify(value))).toString('base64');
    const maxLength = accountId === undefined ? MAX_ANONYMOUS_LENGTH : MAX_LENGTH;
    if (packed.length > maxLength) return undefined;
    if (await limit.count(accountId ?? networkOf(ctx.ip))) return undefined;
    const browser = browserOf(ctx) ?? newBrowser(ctx);
    return shownOnce.keep(ownerOf(browser, accountId), packed);
  }

  return {
    keep: (ctx, value, accountId) =>
      kept(ctx, value, accountId).catch((err: unknown) => {
        log.warn({ requestId: ctx.state.requestId, err }, 'a form could not be kept');
        return undefined;
      }),

    async look<Value>(ctx: Context, name: unknown, accountId: string | undefined) {
      const browser = browserOf(ctx);
      if (browser === undefined || typeof name !== 'string' || !NAME.test(name)) return undefined;
      const packed = await shownOnce.look<string>(ownerOf(browser, accountId), name);
      if (packed === undefined) return undefined;
      return JSON.parse((await unpack(Buffer.from(packed, 'base64'))).toString()) as Value;
    },
  };
}

const ownerOf = (browser: string, accountId = 'nobody'): string => `${browser} ${accountId}`;

const pack = promisify<string, Buffer>(gzip);
const unpack = promisify<Buffer, Buffer>(gunzip);
