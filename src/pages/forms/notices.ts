/** Notices are sentences that a page shows once after a redirect. A signed cookie contains them, not the URL. */
import type { Context } from 'koa';
import { type Clock, epochSeconds } from '../../base/clock.ts';
import type { Message } from '../../base/message.ts';
import { createSeals } from '../../base/seals.ts';
import { inEnglish, isUnknown } from '../../texts/texts.ts';
import { ownCookie } from '../own-cookie.ts';
import { markOf, type Notices, seeOther, type Visitor } from '../page.ts';

const LIFETIME_SECONDS = 120;

interface Notice {
  readonly path: string;
  /** The English text, for a node of another version that does not know the message. */
  readonly sentence: string;
  readonly message?: Message;
  readonly mark: string;
  /** Seconds since the epoch. */
  readonly until: number;
}

export function createNotices(parts: {
  issuer: string;
  /** The first key signs, and all keys verify. */
  keys: readonly [string, ...string[]];
  clock: Clock;
  signedInOf(ctx: Context): Promise<Visitor | undefined>;
}): Notices {
  const { issuer, keys, clock, signedInOf } = parts;
  const cookie = ownCookie(issuer, 'notice');
  const seals = createSeals('notice', keys);

  return {
    async redirect(ctx, url, said) {
      const [path = ''] = url.split('?');
      const until = epochSeconds(clock) + LIFETIME_SECONDS;
      const mark = markOf(await signedInOf(ctx));
      const message = typeof said === 'string' ? {} : { message: said };
      const notice: Notice = { path, sentence: inEnglish(said), until, mark, ...message };
      cookie.set(ctx, seals.seal(notice), LIFETIME_SECONDS);
      seeOther(ctx, url);
    },

    async take(ctx) {
      const notice = seals.open<Notice>(cookie.get(ctx) ?? '');
      // Do not delete the notice for HEAD, because a response to HEAD does not show it.
      if (notice?.path !== ctx.path || ctx.method === 'HEAD') return undefined;
      cookie.clear(ctx);
      const isTheirs = notice.mark === markOf(await signedInOf(ctx));
      if (!isTheirs || notice.until <= epochSeconds(clock)) return undefined;
      const { message, sentence } = notice;
      return message && !isUnknown(message) ? message : sentence;
    },
  };
}
