/** The names of all kinds of activity, for the user's page and for operator commands. */
import { type Message, message, type Text } from '../../base/message.ts';
import { inEnglish, isUnknown } from '../../texts/texts.ts';

/** Ids and names that belong to an activity. They contain no secret. */
export type Details = Readonly<Record<string, string | number | boolean | readonly string[]>>;

/** Why an authorization or a connection ended. Shown after the client's name. */
export const CAUSES = {
  client_revoked: message('activity.cause-client_revoked'),
  code_replayed: message('activity.cause-code_replayed'),
  refresh_token_replayed: message('activity.cause-refresh_token_replayed'),
  person_disconnected: message('activity.cause-person_disconnected'),
  operator_revoked: message('activity.cause-operator_revoked'),
  client_deleted: message('activity.cause-client_deleted'),
  time_limit: message('activity.cause-time_limit'),
  leaked: message('activity.cause-leaked'),
} as const;

export type EndingCause = keyof typeof CAUSES;

/** Further texts about an entry, which the page separates with commas. */
type Note = Text | undefined | readonly (Text | undefined)[];

interface Words {
  /** Replaces the text of the action; undefined for the usual text. */
  readonly what?: (details: Details) => Text | undefined;
  /** The key of `details` whose value names the object of the action, such as `client_name`. */
  readonly about?: string;
  readonly note?: (details: Details) => Note;
  readonly isWarning?: true;
}

const known = (text: Message): Message | undefined => (isUnknown(text) ? undefined : text);

const causeOf = (details: Details): Note => [CAUSES[details.cause as EndingCause], leak(details)];

const leak = ({ found_at: place }: Details): Text | undefined =>
  place === undefined ? undefined : message('activity.found-at', { place: `${place}` });

const ending = ({ last_four: lastFour, ...details }: Details): readonly (Text | undefined)[] => [
  lastFour === undefined ? undefined : message('activity.ending', { lastFour: `${lastFour}` }),
  details.cause === 'leaked' ? (leak(details) ?? message('activity.found-in-public')) : undefined,
];

/** Returns, for example, `email address, name` or `limit of Route Planner, 3 places`. */
const changed = ({ changed: fields = [], ...details }: Details): Note => [
  ...[fields].flat().map((field) => known(message(`activity.field-${field}`)) ?? `${field}`),
  ...limits(details),
];

const limits = ({ places, read_only: isReadOnly, until }: Details): readonly Text[] => [
  ...(places === undefined ? [] : [message('activity.places', { count: Number(places) })]),
  ...(isReadOnly === undefined ? [] : [message('activity.read-only')]),
  ...(until === undefined ? [] : [message('activity.until', { day: `${until}` })]),
];

const where = ({ warehouse_name: warehouse, organization_name: organization }: Details): Note =>
  message('activity.in', { organization: [warehouse, organization].filter((name) => name !== undefined).join(', ') });

/** Returns, for example, `as admin`, `Rotterdam: read, write`, or `by Ada`. */
function access(details: Details): Note {
  const { role, rights, warehouse_name: warehouse, by_name: by } = details;
  // An owner or admin of the organization acted.
  if (by !== undefined) return message('activity.by', { name: `${by}` });
  if (role !== undefined) return message('activity.as', { role: known(message(`roles.${role}`)) ?? `${role}` });
  if (warehouse === undefined) return undefined;
  return rights === undefined ? `${warehouse}` : `${warehouse}: ${[rights].flat().join(', ')}`;
}

/** Returns undefined for changes that do not concern the policy of an organization. */
const policy = ({ clients, api_keys: apiKeys }: Details): Note =>
  clients === undefined
    ? undefined
    : [
        message('activity.policy', { clients: `${clients}` }),
        apiKeys === 'refuse' ? message('activity.policy-no-keys') : undefined,
      ];

const refusal = ({ reason, count }: Details): Note => [
  known(message(`activity.refused-${reason}`)),
  count === undefined ? undefined : message('activity.refused-count', { count: Number(count) }),
];

const linkOf = ({ purpose }: Details): Note => known(message(`activity.link-${purpose}`));

/** What is shown with the text `action.…` of each action. */
const WORDS = {
  signed_in: {
    what: ({ confirmation }) => (confirmation ? message('activity.confirmed') : undefined),
    note({ method, provider_name: provider, passkey_name: passkey, ...details }) {
      if (method === 'link') return linkOf(details);
      if (passkey !== undefined) return message('activity.with-passkey', { passkey: `${passkey}` });
      return provider === undefined
        ? message('activity.with-password')
        : message('activity.with', { provider: `${provider}` });
    },
  },
  sign_in_failed: { note: refusal, isWarning: true },
  sign_in_refused: { about: 'provider_name', note: refusal, isWarning: true },
  identity_linked: { about: 'provider_name' },
  identity_unlinked: { about: 'provider_name' },
  passkey_added: { about: 'passkey_name' },
  passkey_removed: { about: 'passkey_name' },
  passkey_refused: { about: 'passkey_name', note: refusal, isWarning: true },
  signed_out_everywhere: {},
  signed_out_elsewhere: { note: ({ browser }) => `${browser}` },
  account_added: {},
  account_changed: { note: changed },
  account_suspended: { isWarning: true },
  account_resumed: {},
  account_deleted: { isWarning: true },
  password_changed: { note: linkOf },
  password_link_made: { note: (details) => (details.purpose === 'invitation' ? undefined : linkOf(details)) },
  client_added: { about: 'client_name' },
  client_changed: {
    what: ({ cause }) => (cause === 'leaked' ? message('activity.secret-found') : undefined),
    about: 'client_name',
    note: ending,
  },
  client_deleted: { about: 'client_name' },
  client_suspended: { about: 'client_name', isWarning: true },
  client_resumed: { about: 'client_name' },
  client_transferred: { about: 'client_name' },
  client_secret_added: { about: 'client_name', note: ending },
  client_secret_removed: {
    what: ({ cause }) => (cause === 'leaked' ? message('activity.client_secret_refused') : undefined),
    about: 'client_name',
    note: ending,
  },
  client_renewed: {
    // Users who have connected the client see nothing about its secret.
    what: ({ last_four: lastFour }) => (lastFour === undefined ? message('activity.app_renewed') : undefined),
    about: 'client_name',
    note: ({ last_four: lastFour }) =>
      lastFour === undefined
        ? message('activity.app_renewed-note')
        : message('activity.client_renewed-note', { lastFour: `${lastFour}` }),
  },
  client_tokens_revoked: { about: 'client_name' },
  tokens_revoked: { about: 'client_name', note: causeOf },
  everything_revoked: { isWarning: true },
  connected: { about: 'client_name', note: limits },
  authorized_silently: { about: 'client_name' },
  disconnected: { about: 'client_name', note: causeOf },
  api_key_added: { about: 'api_key_name', note: ending },
  api_key_revoked: { about: 'api_key_name', note: ending },
  membership_set: { about: 'organization_name', note: access },
  membership_removed: { about: 'organization_name', note: access },
  member_removed: {
    about: 'organization_name',
    note: ({ person_name: name }) => (name === undefined ? undefined : message('activity.of', { name: `${name}` })),
  },
  client_barred: {
    what: ({ decision }) => (decision === 'declined' ? message('activity.client_declined') : undefined),
    about: 'client_name',
    note: where,
  },
  client_admitted: {
    what: ({ decision }) => (decision === 'approved' ? message('activity.client_approved') : undefined),
    about: 'client_name',
    note: where,
  },
  organization_added: { about: 'organization_name' },
  organization_changed: { about: 'organization_name', note: policy },
  organization_removed: { about: 'organization_name' },
  warehouse_added: { about: 'warehouse_name' },
  warehouse_changed: { about: 'warehouse_name' },
  warehouse_removed: { about: 'warehouse_name' },
  settings_reloaded: {
    about: 'node',
    note: ({ changed: now = [], needs_restart: later = [] }) => changed({ changed: [now, later].flat().map(String) }),
  },
  doctor_ran: { about: 'outcome' },
} as const satisfies Readonly<Record<string, Words>>;

export type Action = keyof typeof WORDS;

export const ACTIONS = Object.keys(WORDS) as readonly Action[];

interface Recorded {
  readonly action: Action;
  readonly details: Details;
}

export function describeAction({ action, details }: Recorded): {
  readonly what: Text;
  readonly about: string | undefined;
  /** Further details, such as `ending in x7Qa`. */
  readonly notes: readonly Text[];
  /** True if an attacker may have caused the action. */
  readonly isWarning: boolean;
} {
  // Before a downgrade to this version, a newer version may have recorded an action that this version does not know.
  const words: Words = WORDS[action] ?? {};
  const { what, about, note, isWarning = false } = words;
  const name = about === undefined ? undefined : details[about];
  return {
    what: what?.(details) ?? known(message(`action.${action}`)) ?? String(action).replaceAll('_', ' '),
    about: name === undefined ? undefined : String(name),
    notes: [note?.(details)].flat().filter((one) => one !== undefined),
    isWarning,
  };
}

export function actionInEnglish(record: Recorded) {
  const { what, about, notes } = describeAction(record);
  return { what: inEnglish(what), about, note: notes.map(inEnglish).join(', ') };
}
