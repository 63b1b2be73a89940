/** What each kind of activity is called on a person's page. */
import type { Action, ActivityRecord } from '../accounts/activity.ts';
import type { ActivityEntry } from './activity-view.ts';
import { browserInWords } from './browser-words.ts';
import { momentOf } from './moment.ts';

type Details = ActivityRecord['details'];

interface Words {
  readonly what: string;
  /** The detail that names what it was about. */
  readonly about?: string;
  readonly note?: (details: Details) => string | undefined;
  readonly isWarning?: true;
}

const ending = ({ last_four: lastFour }: Details): string | undefined =>
  lastFour === undefined ? undefined : `ending in ${lastFour}`;

/** `as admin`, or `Rotterdam: read, write` */
function access({ role, rights, warehouse_name: warehouse }: Details): string | undefined {
  if (role !== undefined) return `as ${role}`;
  if (warehouse === undefined) return undefined;
  return rights === undefined ? `${warehouse}` : `${warehouse}: ${[rights].flat().join(', ')}`;
}

const WORDS: Readonly<Record<Action, Words>> = {
  signed_in: { what: 'Signed in' },
  sign_in_failed: { what: 'Wrong password', isWarning: true },
  signed_out_everywhere: { what: 'Signed out everywhere' },
  account_added: { what: 'Account opened' },
  account_suspended: { what: 'Account suspended', isWarning: true },
  account_resumed: { what: 'Account resumed' },
  password_changed: { what: 'Password changed' },
  password_link_made: {
    what: 'Link to set a password made',
    note: ({ purpose }) =>
      purpose === 'forgotten' ? 'asked for with “Forgot password?”' : undefined,
  },
  client_added: { what: 'Client created', about: 'client_name' },
  client_changed: { what: 'Client changed', about: 'client_name' },
  client_deleted: { what: 'Client deleted', about: 'client_name' },
  client_suspended: { what: 'Client suspended', about: 'client_name', isWarning: true },
  client_resumed: { what: 'Client resumed', about: 'client_name' },
  client_transferred: { what: 'Client given to another owner', about: 'client_name' },
  client_secret_added: { what: 'Client secret added', about: 'client_name', note: ending },
  client_secret_removed: { what: 'Client secret removed', about: 'client_name', note: ending },
  client_tested: { what: 'Client tested', about: 'client_name' },
  connected: { what: 'Connected', about: 'client_name' },
  disconnected: { what: 'Disconnected', about: 'client_name' },
  api_key_added: { what: 'API key created', about: 'api_key_name', note: ending },
  api_key_revoked: { what: 'API key revoked', about: 'api_key_name', note: ending },
  membership_set: { what: 'Access given', about: 'organization_name', note: access },
  membership_removed: { what: 'Access taken', about: 'organization_name', note: access },
  organization_added: { what: 'Organization added', about: 'organization_name' },
  warehouse_added: { what: 'Warehouse added', about: 'warehouse_name' },
};

export function activityInWords({
  action,
  at,
  actor,
  details,
  origin,
}: ActivityRecord): ActivityEntry {
  const { what, about, note, isWarning = false } = WORDS[action];
  const name = about === undefined ? undefined : details[about];
  return {
    at: momentOf(at),
    what,
    about: name === undefined ? undefined : String(name),
    note: note?.(details),
    isWarning,
    by: origin ? browserInWords(origin.browser) : ACTORS[actor],
    address: origin?.address,
  };
}

/** Who it was where no browser was involved. */
const ACTORS: Readonly<Record<ActivityRecord['actor'], string>> = {
  person: 'You',
  operator: 'The operator of this service',
  client: 'The client',
  service: 'This service',
};
