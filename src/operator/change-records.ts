/** What commands change is recorded with the change itself: who may do what, and since when. */
import type { Action, Activity, NewActivity } from '../accounts/activity/activity.ts';
import type { Client } from '../clients/client.ts';
import type { Queries } from '../storage/queries.ts';

/**
 * The record of one change, to be written in its transaction.
 *
 * @param about in whose log it appears, and the ids and names of what it is about.
 */
export type RecordChange = (
  action: Action,
  about: Pick<NewActivity, 'accountId' | 'details'>,
) => ChangeRecord;

export type ChangeRecord = (tx: Queries) => Promise<void>;

export const recordsIn =
  (activity: Activity): RecordChange =>
  (action, about) =>
  (tx) =>
    activity.record({ ...about, action, actor: 'operator' }, tx);

type RecordedClient = Pick<Client, 'id' | 'name'> & { ownerAccountId?: string | undefined };

/** The record of a change of a client, in the log of its owner where there is one. */
export const clientRecord = (
  { recordChange }: { readonly recordChange: RecordChange },
  action: Action,
  { id, name, ownerAccountId }: RecordedClient,
  details: NewActivity['details'] = {},
): ChangeRecord =>
  recordChange(action, {
    accountId: ownerAccountId,
    details: { client_id: id, client_name: name, ...details },
  });
