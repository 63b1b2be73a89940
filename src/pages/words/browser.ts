/** From where a request came, in words that a person recognizes. */
import type { Context } from 'koa';
import type { Origin } from '../../accounts/activity/activity.ts';
import { browserInWords } from '../../accounts/browser-names.ts';
import { originOf } from '../page.ts';

/** From where a request came, as a mail tells it. */
export const fromOf = (ctx: Context): { readonly origin: Origin; readonly browser: string } => {
  const origin = originOf(ctx);
  return { origin, browser: browserInWords(origin.browser) };
};
