/** Where a request came from, for a mail about it. */
import type { Context } from 'koa';
import type { Origin } from '../../accounts/activity/activity.ts';
import { requestOrigin } from '../page.ts';

export const browserDetails = (ctx: Context): { readonly origin: Origin } => ({
  origin: requestOrigin(ctx),
});
