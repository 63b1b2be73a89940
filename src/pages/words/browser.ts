/** Describes where a request came from in words that a user recognizes. */
import type { Context } from 'koa';
import type { Origin } from '../../accounts/activity/activity.ts';
import { describeBrowser } from '../../accounts/browser-names.ts';
import { requestOrigin } from '../page.ts';

/** Returns the origin of a request and the name of its browser, for a mail. */
export const browserDetails = (
  ctx: Context,
): { readonly origin: Origin; readonly browser: string } => {
  const origin = requestOrigin(ctx);
  return { origin, browser: describeBrowser(origin.browser) };
};
