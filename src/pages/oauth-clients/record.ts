/** What an owner did to a client, in the activity log. */
import type { Context } from 'koa';
import type { Action, Activity } from '../../accounts/activity/activity.ts';
import { originInSession } from '../page.ts';
import type { PageParts } from '../routes.ts';
import { accountOf } from '../signed-in.ts';
import { ownClientOf } from './own-client.ts';

/** Records it in the transaction in which it happens. */
export const recordingOf =
  ({ activity }: Pick<PageParts, 'activity'>) =>
  (
    ctx: Context,
    action: Action,
    details: Readonly<Record<string, string | readonly string[]>>,
    tx: Parameters<Activity['record']>[1],
  ): Promise<void> => {
    const { id, name } = ownClientOf(ctx);
    const entry = { action, actor: 'person', accountId: accountOf(ctx).id } as const;
    const all = { client_id: id, client_name: name, ...details };
    return activity.record({ ...entry, details: all, origin: originInSession(ctx) }, tx);
  };
