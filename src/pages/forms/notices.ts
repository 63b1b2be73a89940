/** What a page says once, after a redirect: a sentence in a sealed cookie, not in an address. */
import type { Context } from 'koa';
import { type Clock, epochSeconds } from '../../clock.ts';
import { createSeals } from '../../seals.ts';
import { markOf, type Notices, seeOther, type Visitor } from '../page.ts';

/** Much longer than a redirect takes. */
const LIFETIME_SECONDS = 120;

interface Notice {
  readonly path: string;
  readonly sentence: string;
  readonly mark: string;
  /** Seconds since the epoch. */
  readonly until: number;
}

export function createNotices(parts: {
  issuer: string;
  /** The first signs, all are accepted. */
  keys: readonly [string, ...string[]];
  clock: Clock;
  visitorOf(ctx: Context): Promise<Visitor | undefined>;
}): Notices {
  const { issuer, keys, clock, visitorOf } = parts;
  const isSecure = issuer.startsWith('https:');
  const cookieName = isSecure ? '__Host-gate_notice' : 'gate_notice';
  const cookie = { httpOnly: true, sameSite: 'lax', secure: isSecure, path: '/' } as const;
  const seals = createSeals('notice', keys);

  return {
    async tell(ctx, url, sentence) {
      const [path = ''] = url.split('?');
      const until = epochSeconds(clock) + LIFETIME_SECONDS;
      const notice: Notice = { path, sentence, until, mark: markOf(await visitorOf(ctx)) };
      ctx.cookies.set(cookieName, seals.seal(notice), {
        ...cookie,
        signed: false,
        overwrite: true,
        maxAge: LIFETIME_SECONDS * 1000,
      });
      seeOther(ctx, url);
    },

    async take(ctx) {
      const notice = seals.open<Notice>(ctx.cookies.get(cookieName, { signed: false }) ?? '');
      // A look at the headers alone shows nothing, so it takes nothing.
      if (notice?.path !== ctx.path || ctx.method === 'HEAD') return undefined;
      ctx.cookies.set(cookieName, null, { ...cookie, signed: false });
      const isTheirs = notice.mark === markOf(await visitorOf(ctx));
      return isTheirs && notice.until > epochSeconds(clock) ? notice.sentence : undefined;
    },
  };
}
