/** Stores typed form values for an hour, for forms that need a sign-in before the save, and for the Back button. */
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import type { Context } from 'koa';
import type { Logger } from 'pino';
import type { OneTimeValues } from '../../accounts/one-time-values.ts';
import type { AttemptLimit } from '../../base/attempt-limits.ts';
import { networkOf } from '../../base/network-address.ts';
import { isLongId, randomId } from '../../base/random-id.ts';
import { ownCookie } from '../own-cookie.ts';

export type FormDrafts = ReturnType<typeof createFormDrafts>;

/** The kinds of stored values, by name. `find` returns only a value of the requested kind. */
export interface DraftKinds {
  readonly typed: [string, string][];
  /** The stored response to a form. */
  readonly answer: {
    readonly path: string;
    readonly status: number;
    readonly headers: readonly (readonly [string, string])[];
    readonly html: string;
  };
  readonly email: string;
  readonly onward: string;
}

/** Maximum compressed length, which is enough for two pages of a client with 20 redirect URIs and 100 problems. */
const MAX_LENGTH = 65_536;
/** Maximum compressed length of a draft if no user is signed in. It is enough for three pages with empty forms. */
const MAX_ANONYMOUS_LENGTH = 8_192;

export function createFormDrafts(parts: {
  readonly issuer: string;
  readonly oneTimeValues: OneTimeValues;
  /** Limits how much each user, or each network without a signed-in user, can store. */
  readonly limit: AttemptLimit;
  readonly log: Logger;
}) {
  const { issuer, oneTimeValues, limit, log } = parts;
  const cookie = ownCookie(issuer, 'browser');

  function newBrowser(ctx: Context): string {
    const browser = randomId('', 43);
    cookie.set(ctx, browser);
    return browser;
  }

  return {
    /**
     * Stores a value that is not secret, for this browser and this user.
     *
     * @param accountId undefined if the value is to be found without a signed-in user
     * @returns the name to pass to `find`; undefined if the value could not be stored, which the caller may ignore
     */
    async save<Kind extends keyof DraftKinds>(
      ctx: Context,
      kind: Kind,
      value: DraftKinds[Kind],
      accountId: string | undefined,
    ): Promise<string | undefined> {
      try {
        const packed = (await pack(JSON.stringify(value))).toString('base64');
        const maxLength = accountId === undefined ? MAX_ANONYMOUS_LENGTH : MAX_LENGTH;
        if (packed.length > maxLength) return undefined;
        if (await limit.count(accountId ?? networkOf(ctx.ip))) return undefined;
        const browser = cookie.longId(ctx) ?? newBrowser(ctx);
        return await oneTimeValues.store(ownerOf(browser, kind, accountId), packed);
      } catch (err) {
        log.warn({ requestId: ctx.state.requestId, err }, 'a form draft could not be stored');
        return undefined;
      }
    },

    /** Returns undefined if the value has expired, or was saved for another kind, browser or user. */
    async find<Kind extends keyof DraftKinds>(
      ctx: Context,
      kind: Kind,
      name: unknown,
      accountId: string | undefined,
    ): Promise<DraftKinds[Kind] | undefined> {
      const browser = cookie.longId(ctx);
      if (browser === undefined || !isLongId(name)) return undefined;
      const packed = await oneTimeValues.peek<string>(ownerOf(browser, kind, accountId), name);
      if (packed === undefined) return undefined;
      return JSON.parse((await unpack(Buffer.from(packed, 'base64'))).toString());
    },
  };
}

const ownerOf = (browser: string, kind: keyof DraftKinds, accountId = ''): string => `${browser} ${kind} ${accountId}`;

const pack = promisify<string, Buffer>(gzip);
const unpack = promisify<Buffer, Buffer>(gunzip);
