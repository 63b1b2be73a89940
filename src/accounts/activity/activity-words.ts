/** The names of all kinds of activity, on the user's page and in operator commands. */

/** Ids and names that belong to an activity. Never a secret. */
export type Details = Readonly<Record<string, string | number | boolean | readonly string[]>>;

/** Why an authorization or a connection ended; the text follows the client's name. */
export const CAUSES = {
  client_revoked: 'by the client itself',
  code_replayed: 'an authorization code was presented a second time',
  refresh_token_replayed: 'a refresh token was presented that had been replaced',
  person_disconnected: 'the person disconnected the client',
  operator_revoked: 'by the operator',
  client_deleted: 'the client was deleted',
  time_limit: 'the date came until which the person had connected it',
  leaked: 'a token or code was found in public',
} as const;

export type EndingCause = keyof typeof CAUSES;

interface Words {
  readonly what: string | ((details: Details) => string);
  readonly about?: string;
  readonly note?: (details: Details) => string | undefined;
  readonly isWarning?: true;
}

const causeOf = (details: Details): string | undefined =>
  [CAUSES[details.cause as EndingCause], leak(details)].filter(Boolean).join(': ') || undefined;

/** Returns where a value was found in public, if the report said it. */
const leak = ({ found_at: foundAt }: Details): string | undefined =>
  foundAt === undefined ? undefined : `found at ${foundAt}`;

const ending = ({ last_four: lastFour, ...details }: Details): string | undefined =>
  [
    lastFour === undefined ? undefined : `ending in ${lastFour}`,
    details.cause === 'leaked' ? (leak(details) ?? 'found in public') : undefined,
  ]
    .filter(Boolean)
    .join(', ') || undefined;

/** Formats what changed, such as `email address, name` or `limit of Route Planner: 3 places`. */
const changed = ({ changed: fields = [], ...details }: Details): string =>
  [
    [fields]
      .flat()
      .map((field) => FIELDS[String(field)] ?? field)
      .join(', '),
    limits(details),
  ]
    .filter(Boolean)
    .join(': ');

const FIELDS: Readonly<Record<string, string>> = {
  email: 'email address',
  external_id: 'external id',
};

/** Returns, for example, `3 places, only to read, until 2026-12-31`; undefined without a limit. */
const limits = ({ places, read_only: isReadOnly, until }: Details): string | undefined => {
  const parts = [
    ...(places === undefined ? [] : [`${places} ${places === 1 ? 'place' : 'places'}`]),
    ...(isReadOnly === undefined ? [] : ['only to read']),
    ...(until === undefined ? [] : [`until ${until}`]),
  ];
  return parts.length === 0 ? undefined : parts.join(', ');
};

/** Returns, for example, `by Ada`, if an owner or admin of the organization acted. */
const byWhom = ({ by_name: name }: Details): string | undefined =>
  name === undefined ? undefined : `by ${name}`;

/** Returns, for example, `from Storm Logistics, by Ada`. */
const whence = (details: Details): string =>
  [`from ${details.organization_name}`, byWhom(details)].filter(Boolean).join(', ');

/** Returns, for example, `as admin`, `Rotterdam: read, write`, or `by Ada`. */
function access(details: Details): string | undefined {
  const { role, rights, warehouse_name: warehouse } = details;
  if (details.by_name !== undefined) return byWhom(details);
  if (role !== undefined) return `as ${role}`;
  if (warehouse === undefined) return undefined;
  return rights === undefined ? `${warehouse}` : `${warehouse}: ${[rights].flat().join(', ')}`;
}

/** Describes the new policy of an organization. Returns undefined for other changes. */
function policy({ clients, api_keys: apiKeys }: Details): string | undefined {
  if (clients === undefined) return undefined;
  const about = clients === 'ask' ? 'clients need an approval' : 'clients need no approval';
  return apiKeys === 'refuse' ? `${about}, no API keys` : about;
}

/** Why a sign-in with a provider or a passkey was refused. */
const REFUSALS: Readonly<Record<string, string>> = {
  suspended: 'the account is suspended',
  taken: 'the account is linked with somebody else there',
  another: 'somebody else was to confirm that it is them',
  password_alone: 'a password alone is not enough for them',
  copied: 'its counter did not grow, so somebody may have copied it',
  too_many: 'there were too many attempts, so more are refused for a while',
};

/** Returns why a sign-in was refused, and how often if the entry stands for several. */
const refusal = ({ reason, count }: Details): string | undefined =>
  [REFUSALS[String(reason)], count === undefined ? '' : `${count} within a minute`]
    .filter(Boolean)
    .join('; ') || undefined;

/** How a password changed: the purpose of the one-time link, or `removed`. */
const LINKS: Readonly<Record<string, string>> = {
  invitation: 'with a link of the operator’s',
  forgotten: 'with a link of “Forgot password?”',
  confirmed: 'after it was confirmed with a provider',
  removed: 'it was removed, after the first sign-in with a provider',
};

/** Steps of a handover. Stored as changes of a client, because older versions know no other action. */
const STEPS: Readonly<Record<string, string>> = {
  made: 'Client offered to a new owner',
  received: 'Client offered to you',
  withdrawn: 'Offer of a client withdrawn',
  declined: 'Offer of a client declined',
  given: 'Client handed over',
  taken: 'Client taken over',
  leaked: 'Client secret found in public',
};

const stepOr =
  (otherwise: string) =>
  ({ offer, handover, cause }: Details): string =>
    STEPS[String(offer ?? handover ?? cause)] ?? otherwise;

/** Returns, for example, `to Bob` or `from Ada`, if the owners arranged the handover themselves. */
function otherOwner({ person_name: to, by_name: from }: Details): string | undefined {
  if (to !== undefined) return `to ${to}`;
  return from === undefined ? undefined : `from ${from}`;
}

const WORDS = {
  signed_in: {
    what: ({ confirmation }) => (confirmation ? 'Confirmed it is you' : 'Signed in'),
    note: ({ method, provider_name: provider, passkey_name: passkey, purpose }) => {
      if (method === 'link') return LINKS[String(purpose)];
      if (passkey !== undefined) return `with the passkey ${passkey}`;
      return provider === undefined ? 'with a password' : `with ${provider}`;
    },
  },
  sign_in_failed: { what: 'Wrong password', note: refusal, isWarning: true },
  sign_in_refused: {
    what: 'Sign-in refused',
    about: 'provider_name',
    note: refusal,
    isWarning: true,
  },
  signed_out_upstream: { what: 'Signed out by', about: 'provider_name' },
  identity_linked: { what: 'Way to sign in linked', about: 'provider_name' },
  identity_unlinked: { what: 'Way to sign in unlinked', about: 'provider_name' },
  passkey_added: { what: 'Passkey added', about: 'passkey_name' },
  passkey_removed: { what: 'Passkey removed', about: 'passkey_name' },
  passkey_refused: {
    what: 'Passkey refused',
    about: 'passkey_name',
    note: refusal,
    isWarning: true,
  },
  signed_out_everywhere: { what: 'Signed out everywhere' },
  signed_out_elsewhere: {
    what: 'Signed out in another browser',
    note: ({ browser }) => `${browser}`,
  },
  account_added: { what: 'Account opened' },
  account_changed: { what: 'Account changed', note: changed },
  account_suspended: { what: 'Account suspended', isWarning: true },
  account_resumed: { what: 'Account resumed' },
  account_deleted: { what: 'Account deleted', isWarning: true },
  password_changed: { what: 'Password changed', note: ({ purpose }) => LINKS[String(purpose)] },
  password_link_made: {
    what: 'Link to set a password made',
    note: ({ purpose }) => (purpose === 'invitation' ? undefined : LINKS[String(purpose)]),
  },
  client_added: { what: 'Client created', about: 'client_name' },
  client_changed: {
    what: stepOr('Client changed'),
    about: 'client_name',
    note: (details) => byWhom(details) ?? ending(details),
  },
  client_deleted: { what: 'Client deleted', about: 'client_name' },
  client_suspended: { what: 'Client suspended', about: 'client_name', isWarning: true },
  client_resumed: { what: 'Client resumed', about: 'client_name' },
  client_transferred: {
    what: stepOr('Client given to another owner'),
    about: 'client_name',
    note: otherOwner,
  },
  client_secret_added: { what: 'Client secret added', about: 'client_name', note: ending },
  client_secret_removed: {
    what: ({ cause }) => (cause === 'leaked' ? 'Client secret refused' : 'Client secret removed'),
    about: 'client_name',
    note: ending,
  },
  client_tested: { what: 'Client tested', about: 'client_name' },
  client_tokens_revoked: { what: 'All tokens of the client ended', about: 'client_name' },
  tokens_revoked: { what: 'Authorization ended', about: 'client_name', note: causeOf },
  everything_revoked: { what: 'Every authorization of everybody ended', isWarning: true },
  connected: { what: 'Connected', about: 'client_name', note: limits },
  disconnected: { what: 'Disconnected', about: 'client_name', note: causeOf },
  api_key_added: { what: 'API key created', about: 'api_key_name', note: ending },
  api_key_revoked: { what: 'API key revoked', about: 'api_key_name', note: ending },
  membership_set: { what: 'Access given', about: 'organization_name', note: access },
  membership_removed: { what: 'Access taken', about: 'organization_name', note: access },
  member_removed: {
    what: 'Membership ended',
    about: 'organization_name',
    note: ({ person_name: name }) => (name === undefined ? undefined : `of ${name}`),
  },
  client_barred: {
    what: ({ decision }) => (decision === 'declined' ? 'Client declined' : 'Client blocked'),
    about: 'client_name',
    note: whence,
  },
  client_admitted: {
    what: ({ decision }) => (decision === 'approved' ? 'Client approved' : 'Client unblocked'),
    about: 'client_name',
    note: (details) => whence(details).replace(/^from/, 'to'),
  },
  organization_added: { what: 'Organization added', about: 'organization_name' },
  organization_changed: { what: 'Organization changed', about: 'organization_name', note: policy },
  organization_removed: { what: 'Organization removed', about: 'organization_name' },
  warehouse_added: { what: 'Warehouse added', about: 'warehouse_name' },
  warehouse_changed: { what: 'Warehouse changed', about: 'warehouse_name' },
  warehouse_removed: { what: 'Warehouse removed', about: 'warehouse_name' },
  doctor_ran: { what: 'The doctor tried the service out', about: 'outcome' },
} as const satisfies Readonly<Record<string, Words>>;

export type Action = keyof typeof WORDS;

export const ACTIONS = Object.keys(WORDS) as readonly Action[];

interface ActivityInWords {
  /** For example `Signed in` or `API key revoked`. */
  readonly what: string;
  /** The name of the client, key, organization or warehouse concerned. */
  readonly about: string | undefined;
  /** Further details, such as `ending in x7Qa`. */
  readonly note: string | undefined;
  /** True if the action may have been an attacker's. */
  readonly isWarning: boolean;
}

export function describeAction({
  action,
  details,
}: {
  readonly action: Action;
  readonly details: Details;
}): ActivityInWords {
  // A newer version may have recorded the action before it was downgraded to this version.
  const words: Words = WORDS[action] ?? { what: String(action).replaceAll('_', ' ') };
  const { what, about, note, isWarning = false } = words;
  const name = about === undefined ? undefined : details[about];
  return {
    what: typeof what === 'string' ? what : what(details),
    about: name === undefined ? undefined : String(name),
    note: note?.(details),
    isWarning,
  };
}
