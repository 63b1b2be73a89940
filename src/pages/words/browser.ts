/** Describes where a request came from in words that a user recognizes. */
import type { Context } from 'koa';
import type { Origin } from '../../accounts/activity/activity.ts';
import { browserInWords } from '../../accounts/browser-names.ts';
import { originOf } from '../page.ts';

/** Returns the origin of a request and the name of its browser, for a mail. */
export const fromOf = (ctx: Context): { readonly origin: Origin; readonly browser: string } => {
  const origin = originOf(ctx);
  return { origin, browser: browserInWords(origin.browser) };
};
