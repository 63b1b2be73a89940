-- The schema of 1.0.0. A change of the schema is a new file with the next number.
-- Up Migration

-- Notifications: each node caches what it has read until a trigger announces a change (storage/change-feed.ts).

-- The arguments of such a trigger are the topic and at most two columns that name what has changed; one of them may be
-- null. Changes of columns that no node caches are not announced, because many requests write last_used_at.
create function announce() returns trigger language plpgsql as $$
  declare not_kept constant text[] := array['last_used_at', 'silent_at', 'silent_elsewhere_at',
    'grace_began_at', 'passkey_handle'];
begin
  if tg_level = 'STATEMENT' then
    perform pg_notify('gatehouse_named_changes', 'everything');
  elsif tg_op <> 'UPDATE' or to_jsonb(old) - not_kept <> to_jsonb(new) - not_kept then
    perform pg_notify('gatehouse_named_changes',
        concat_ws(' ', tg_argv[0], named ->> tg_argv[1], named ->> tg_argv[2]))
      from unnest(array[to_jsonb(old), to_jsonb(new)]) named where named is not null;
  end if;
  return null;
end $$;

-- Organizations, people and access

-- A row is a person who can sign in.
create table accounts (
  id text primary key,
  email text not null,
  email_key text not null unique, -- One text for all spellings of the address (accounts/email.ts).
  name text not null,
  password_hash text, -- Null until the person sets a password.
  created_at timestamptz not null, suspended_at timestamptz,
  suspended_by_import boolean not null default false, -- An import ends only the suspensions that an import began.
  external_id text unique, -- The id in the system that imports the person; null if none does.
  session_generation integer not null default 0, -- Sessions that began in an earlier generation have ended.
  passkey_handle text, -- The random name under which authenticators keep the passkeys; never changes once it is set.
  grace_began_at timestamptz, -- Since when the person is asked for more than a password (sign_in.require).
  unwanted_mail text[] not null default '{}', -- The kinds of mail that the person does not want.
  language text -- Language of pages and mails; null until the person chooses one. No check: each language is a file.
);
create index accounts_created_at on accounts (created_at, id);
create index accounts_suspended on accounts (id) where suspended_at is not null;
-- A suspension ends all sessions for good, so that the end of the suspension does not restore a thief's session.
create function end_sessions_of_account() returns trigger language plpgsql as $$ begin
  new.session_generation := old.session_generation + 1;
  return new;
end $$;
create trigger accounts_end_sessions before update of suspended_at on accounts for each row
  when (old.suspended_at is null and new.suspended_at is not null) execute function end_sessions_of_account();
create index accounts_of_doctor on accounts (created_at) where email like 'doctor-%@gatehouse.invalid';
-- A new account is not announced, because no node caches that an account does not exist.
create trigger accounts_named after update or delete on accounts
  for each row execute function announce('accounts', 'id');

-- A row is a company whose data lies in warehouses.
create table organizations (
  id text primary key,
  name text not null, created_at timestamptz not null,
  name_key text, -- One text for all names that look alike (texts/name-rules.ts); null if SQL added the row by hand.
  external_id text unique, -- The id in the system that imports the organization; null if none does.
  asks_first boolean not null default false, -- True if only approved clients have access to the organization.
  allows_api_keys boolean not null default true, -- True if personal API keys have access to the organization.
  ended_at timestamptz -- When its deletion in steps began. It then gives no access; no line or command finds it.
);
create index organizations_name_key on organizations (name_key);
create index organizations_ended on organizations (ended_at) where ended_at is not null;
-- The indexed expression is that of `byName` (storage/pages.ts).
create index organizations_by_name on organizations ((
  regexp_replace(regexp_replace(name, '(\d+)', '0000000000\1', 'g'), '0*(\d{10})', '\1', 'g')
    collate "und-x-icu"), id);
-- Only updates: a new organization has no members, and a deletion also deletes its memberships, which are announced.
create trigger organizations_named after update on organizations
  for each row execute function announce('organizations', 'id');

-- A row is a warehouse of an organization: what the GraphQL API gives access to.
create table warehouses (
  id text primary key,
  organization_id text not null references organizations on delete cascade,
  name text not null,
  created_at timestamptz not null,
  external_id text unique, -- The id in the system from which the warehouse is imported; null if no import changes it.
  ended_at timestamptz, -- See organizations.ended_at. A deleted organization gives this time to its warehouses.
  constraint warehouses_organization_id_id_key unique (organization_id, id)
);
create index warehouses_present on warehouses (organization_id) where ended_at is null;
create index warehouses_ended on warehouses (ended_at) where ended_at is not null;
-- The indexed expression is that of `byName` (storage/pages.ts).
create index warehouses_by_name on warehouses (organization_id, (
  regexp_replace(regexp_replace(name, '(\d+)', '0000000000\1', 'g'), '0*(\d{10})', '\1', 'g')
    collate "und-x-icu"), id);
create trigger warehouses_named after insert or update or delete on warehouses
  for each row execute function announce('organizations', 'organization_id');

-- A row is a client: an app of a partner, a machine, or a resource server that introspects tokens.
create table clients (
  id text primary key,
  kind text not null check (kind in ('confidential', 'public', 'machine', 'resource-server')),
  name text not null,
  -- No cascade: a client must be transferred or deleted before the account of its owner can be deleted.
  owner_account_id text references accounts,
  owned_since timestamptz, -- When the owner received the client; null for the first owner.
  redirect_uris text[] not null, native boolean not null,
  homepage_url text, support_url text, privacy_url text,
  created_at timestamptz not null, updated_at timestamptz not null,
  suspended_at timestamptz, last_used_at timestamptz,
  verified_at timestamptz, -- When the operator verified the client. A change of the client clears it.
  -- Access tokens and codes of an earlier generation are refused, and refresh tokens need a secret of this generation.
  generation integer not null default 0,
  renewed_at timestamptz, -- When the client was last renewed: all its secrets are newer.
  ended_through integer not null default 0, -- Everything of an earlier generation has ended for good.
  ending_since timestamptz, -- When `ended_through` was raised; null once all older connections are marked as ended.
  always_asks boolean not null default false, -- True if an earlier approval never counts: people approve each request.
  asks_for_operator boolean not null default false, -- True if only the operator may unset `always_asks`.
  leaked_secrets text[] not null default '{}', -- The latest leaked secrets. Their machine access tokens are revoked.
  creation_key text, -- A hash of the form that created the client: a form sent twice creates one client.
  constraint clients_creation_key_key unique (owner_account_id, creation_key),
  constraint clients_native_is_public check (not native or kind = 'public'),
  constraint clients_always_asks check (not always_asks or kind = 'confidential'),
  constraint clients_asks_for_operator check (not asks_for_operator or always_asks),
  constraint clients_redirects_people check (
    (kind in ('confidential', 'public')) = (cardinality(redirect_uris) > 0))
);
create index clients_owner_account_id on clients (owner_account_id);
create index clients_created_at on clients (created_at, id);
create index clients_verified on clients (id) where verified_at is not null;
create trigger clients_named after insert or update or delete on clients
  for each row execute function announce('clients', 'id');

-- A row is the membership of a person or of a machine client in an organization.
create table organization_memberships (
  id bigint generated always as identity primary key,
  account_id text references accounts on delete cascade,
  client_id text references clients on delete cascade,
  organization_id text not null references organizations on delete cascade,
  role text not null check (role in ('owner', 'admin', 'member', 'viewer')),
  created_at timestamptz not null,
  constraint organization_memberships_one_subject check (num_nonnulls(account_id, client_id) = 1),
  constraint organization_memberships_account_key unique (account_id, organization_id),
  constraint organization_memberships_client_key unique (client_id, organization_id)
);
create index organization_memberships_joined on organization_memberships (organization_id, id);
create index organization_memberships_admins on organization_memberships (organization_id, role, id)
  where role in ('owner', 'admin');
create index organization_memberships_machines on organization_memberships (organization_id, id)
  where client_id is not null;
create trigger organization_memberships_named after insert or update or delete on organization_memberships
  for each row execute function announce('access', 'account_id', 'client_id');

-- A row is what a member may do in one warehouse. It belongs to a membership of the same subject in the same
-- organization and is deleted with it. Of the two references to memberships, the one whose subject is null does not
-- apply (MATCH SIMPLE).
create table warehouse_rights (
  id bigint generated always as identity primary key,
  account_id text, client_id text,
  organization_id text not null, warehouse_id text not null,
  rights text[] not null check (rights <@ array['read', 'write', 'manage'] and cardinality(rights) > 0),
  constraint warehouse_rights_one_subject check (num_nonnulls(account_id, client_id) = 1),
  constraint warehouse_rights_account_key unique (account_id, warehouse_id),
  constraint warehouse_rights_client_key unique (client_id, warehouse_id),
  constraint warehouse_rights_warehouse_fkey foreign key (organization_id, warehouse_id)
    references warehouses (organization_id, id) on delete cascade on update cascade,
  constraint warehouse_rights_account_membership_fkey foreign key (account_id, organization_id)
    references organization_memberships (account_id, organization_id) on delete cascade,
  constraint warehouse_rights_client_membership_fkey foreign key (client_id, organization_id)
    references organization_memberships (client_id, organization_id) on delete cascade
);
create index warehouse_rights_warehouse on warehouse_rights (organization_id, warehouse_id);
create index warehouse_rights_machines on warehouse_rights (warehouse_id) where client_id is not null;
create trigger warehouse_rights_named after insert or update or delete on warehouse_rights
  for each row execute function announce('access', 'account_id', 'client_id');

-- A row is a personal API key, which acts as the person who created it.
create table api_keys (
  id text primary key,
  account_id text not null references accounts on delete cascade,
  name text not null,
  key_hash text not null unique,
  last_four text not null,
  created_at timestamptz not null, expires_at timestamptz, last_used_at timestamptz,
  limit_places text[], -- Ids of organizations and warehouses; null for all, including later ones.
  limit_read_only boolean not null default false,
  creation_key text, -- See clients.
  constraint api_keys_creation_key_key unique (account_id, creation_key)
);
create index api_keys_of_account on api_keys (account_id, created_at, id);
create index api_keys_created_at on api_keys (created_at, id);
create index api_keys_expires_at on api_keys (expires_at);
-- A new key is not announced, because no node caches that a key does not exist.
create trigger api_keys_named after update or delete on api_keys
  for each row execute function announce('api-keys', 'key_hash');
-- Resource servers know a key by its id. Triggers run in the order of their names: nodes drop the cached key first.
create trigger api_keys_named_publicly after update or delete on api_keys
  for each row execute function announce('api-key-ids', 'id');

-- Clients

-- A row is a secret of a client.
create table client_secrets (
  id text primary key,
  client_id text not null references clients on delete cascade,
  secret_hash text not null, last_four text not null,
  created_at timestamptz not null, last_used_at timestamptz,
  leaked_at timestamptz, -- When the secret was found in public. It stays accepted for a grace period.
  refused_at timestamptz -- When the grace period ended.
);
create index client_secrets_client_id on client_secrets (client_id);
create index client_secrets_leaked on client_secrets (leaked_at) where leaked_at is not null and refused_at is null;
create trigger client_secrets_named after insert or update or delete on client_secrets
  for each row execute function announce('clients', 'client_id');

-- A row is a client that an organization blocks, for all users of the client.
create table barred_clients (
  organization_id text not null references organizations on delete cascade,
  client_id text not null references clients on delete cascade,
  barred_at timestamptz not null,
  barred_by text references accounts on delete set null, -- The owner or admin who blocked the client.
  follows boolean not null default false, -- True if the client is blocked because of another client of its owner.
  primary key (organization_id, client_id)
);
create index barred_clients_client_id on barred_clients (client_id);
create index barred_clients_barred_by on barred_clients (barred_by) where barred_by is not null;
create trigger barred_clients_named after insert or update or delete on barred_clients
  for each row execute function announce('bars', 'client_id');

-- A row is a client that an organization blocks in one of its warehouses. This is independent of a block in the whole
-- organization: each must be removed separately.
create table barred_in_warehouses (
  warehouse_id text not null references warehouses on delete cascade,
  client_id text not null references clients on delete cascade,
  barred_at timestamptz not null,
  barred_by text references accounts on delete set null, -- The owner or admin who blocked the client.
  primary key (client_id, warehouse_id)
);
create index barred_in_warehouses_warehouse_id on barred_in_warehouses (warehouse_id);
create index barred_in_warehouses_barred_by on barred_in_warehouses (barred_by) where barred_by is not null;
create trigger barred_in_warehouses_named after insert or update or delete on barred_in_warehouses
  for each row execute function announce('bars', 'client_id');

-- A row has the owner and the redirect URIs of a client that an organization blocked. It stays when the client is
-- deleted: otherwise the owner could delete the client and register it again.
create table barred_redirects (
  organization_id text not null references organizations on delete cascade,
  client_id text not null,
  owner_account_id text not null references accounts on delete cascade,
  redirect_uris text[] not null,
  barred_by text references accounts on delete set null, -- The owner or admin who blocked the first client.
  primary key (organization_id, client_id)
);
create index barred_redirects_owner_account_id on barred_redirects (owner_account_id);
create index barred_redirects_barred_by on barred_redirects (barred_by) where barred_by is not null;

-- A row is the decision of an organization about a client. A client that waits for a decision has no row: it is a
-- connection of a member. A block (barred_clients) overrides an approval.
create table client_decisions (
  organization_id text not null references organizations on delete cascade,
  client_id text not null references clients on delete cascade,
  is_approved boolean not null, -- False if the client was declined; `sentence` then gives its users the reason.
  sentence text, decided_at timestamptz not null,
  decided_by text references accounts on delete set null, -- The owner or admin who decided; null for the operator.
  primary key (organization_id, client_id)
);
create index client_decisions_client_id on client_decisions (client_id);
create index client_decisions_decided_by on client_decisions (decided_by) where decided_by is not null;
-- The same topic as for a block, so that resource servers introspect the client's tokens again.
create trigger client_decisions_named after insert or update or delete on client_decisions
  for each row execute function announce('bars', 'client_id');

-- Connections and authorizations

-- The only row has numbers that are never lowered, without which the service would not know what has ended, the latest
-- request to reload, and the time of the last import.
create table lasting_numbers (
  is_the_only_one boolean primary key default true check (is_the_only_one),
  -- The generation of new connections. `revoke --all` raises it, because a restored database may lack a connection
  -- whose tokens still exist, and the person may connect the client again.
  first_generation integer not null default 1,
  -- Added to the session generation of every account, to end all sessions at once. It follows the clock in
  -- microseconds, so that after the restore of an older database, the next value is higher than any lost one.
  session_generation bigint not null default 0,
  -- The longest lifetime of refresh tokens that any node has run with: an older copy of the token store may have records
  -- with that lifetime. Each ended authorization is kept at least as long.
  refresh_lifetime_seconds integer not null default 0,
  -- The request to reload the settings, by whom, and the one before. Its number is a time in milliseconds since 1970, so
  -- that numbers also grow after the restore of an older backup.
  reload_number bigint not null default 0, reload_previous bigint not null default 0,
  reload_operator text, reload_reason text, -- Each node that reloads copies both into its `activity` entry.
  imported_at timestamptz -- When the last import brought everything to the state of its file; null before the first one.
);
insert into lasting_numbers default values;
create function keep_only_row() returns trigger language plpgsql as $$ begin
  raise exception '% must keep its row: without it, what has ended is not known', tg_table_name;
end $$;
create trigger lasting_numbers_kept before delete or truncate on lasting_numbers
  for each statement execute function keep_only_row();
create trigger every_session_ended after update of session_generation on lasting_numbers
  for each statement execute function announce();
create function first_generation() returns integer language sql stable as 'select first_generation from lasting_numbers';

-- A row is a person who connected a client. It stays after the connection has ended.
create table connections (
  account_id text not null references accounts on delete cascade,
  client_id text not null references clients on delete cascade,
  connected_at timestamptz not null, last_used_at timestamptz,
  -- What the last consent page showed: the name, the redirect hosts and the owned_since of the client. If the client
  -- has others now, the person is asked again.
  consented_name text not null, consented_hosts text[] not null, consented_owned_since timestamptz,
  approved_at timestamptz not null, -- The time of the last approval.
  limit_places text[], -- Ids of organizations and warehouses; null for all, including later ones.
  limit_read_only boolean not null default false,
  limit_until timestamptz, -- When the connection ends by itself.
  generation integer not null default first_generation(), -- Authorizations of an earlier generation have ended.
  client_generation integer not null default 0, -- The client's generation at the last approval.
  ended_at timestamptz, ended_cause text,
  -- When the activity last got an entry about an authorization without a click: in a browser that the person had signed
  -- in with before, and in another browser.
  silent_at timestamptz, silent_elsewhere_at timestamptz,
  primary key (account_id, client_id)
);
create index connections_client_id on connections (client_id);
create index connections_connected on connections (client_id, account_id) where ended_at is null;
-- For counts: they leave out connections that ended with their client, whose rows are marked later.
create index connections_current on connections (client_id, client_generation, account_id) where ended_at is null;
create index connections_latest on connections (client_id, connected_at, account_id) where ended_at is null;
create index connections_limit_until on connections (limit_until) where limit_until is not null and ended_at is null;
create trigger connections_named after insert or update or delete on connections
  for each row execute function announce('connections', 'account_id', 'client_id');

-- A row is a connection of a member of an organization: a join of both tables, which triggers keep, so that the page of
-- an organization reads only what it shows. Connections whose end date has passed stay until a job ends them.
create table member_connections (
  organization_id text not null, client_id text not null, account_id text not null, connected_at timestamptz not null,
  primary key (account_id, client_id, organization_id),
  constraint member_connections_membership_fkey foreign key (account_id, organization_id)
    references organization_memberships (account_id, organization_id) on delete cascade,
  constraint member_connections_connection_fkey foreign key (account_id, client_id)
    references connections on delete cascade
);
create index member_connections_latest on member_connections (organization_id, client_id, connected_at, account_id);

-- The key share locks wait for a deletion in progress. A consent locks the account's row, and the foreign key of a new
-- membership waits for that lock, so that one of the two always sees the other.
create function keep_connection_of_member() returns trigger language plpgsql as $$ begin
  if new.ended_at is not null then
    delete from member_connections where account_id = new.account_id and client_id = new.client_id;
  else
    insert into member_connections as kept
      select organization_id, new.client_id, account_id, new.connected_at
        from organization_memberships where account_id = new.account_id for key share
      on conflict (account_id, client_id, organization_id) do update
        set connected_at = excluded.connected_at where kept.connected_at <> excluded.connected_at;
  end if;
  return null;
end $$;
create trigger connections_of_members after insert or update of ended_at, connected_at
  on connections for each row execute function keep_connection_of_member();

create function keep_connections_of_new_member() returns trigger language plpgsql as $$ begin
  insert into member_connections
    select new.organization_id, client_id, account_id, connected_at
      from connections where account_id = new.account_id and ended_at is null for key share
    on conflict do nothing;
  return null;
end $$;
create trigger memberships_of_connections after insert on organization_memberships
  for each row when (new.account_id is not null) execute function keep_connections_of_new_member();

-- A row is an authorization that was revoked singly. Each decision about a token reads it with the person. The row has
-- no references, because it outlives the connection, the client and the account.
create table ended_authorizations (
  id text primary key,
  at timestamptz not null, cause text not null, account_id text not null, client_id text not null,
  forgotten_at timestamptz not null -- When to delete the row: no restored token store can then have the authorization.
);
create index ended_authorizations_forgotten_at on ended_authorizations (forgotten_at);
create index ended_authorizations_account_id on ended_authorizations (account_id);

-- A row is a machine access token that was revoked before it expired. Each decision about a token reads it with the
-- client. The key is the hash under which Redis stores the token. If Redis has lost the token, client_id is the client
-- that presented it: the row ends nothing if the token is another client's.
create table ended_machine_tokens (
  key text not null,
  client_id text not null, at timestamptz not null, expires_at timestamptz not null,
  primary key (client_id, key)
);
create index ended_machine_tokens_expiry on ended_machine_tokens (expires_at);

-- Tokens, if no Redis is configured. Times are seconds since the epoch and compared with the clock of the service.

-- A row is a session, an interaction, a machine access token or a value that is shown once.
create table token_records (
  kind text not null, key text not null, uid text, data json not null, expires_at bigint not null,
  primary key (kind, key)
);
create index token_records_expires_at on token_records (expires_at);
create index token_records_uid on token_records (uid) where uid is not null;

-- A row is what a person allowed a client: its code, its access token and its refresh token.
create table authorizations (
  key text primary key,
  account_id text not null, client_id text not null,
  generation integer not null, -- The connection's generation at the approval.
  secret text not null, redirect_uri_hash text not null, code_challenge_hash text,
  approved_at bigint not null, ends_at bigint,
  rotation integer not null, -- -1 until the code is exchanged.
  attempt text not null,
  rotated_at bigint not null, -- In milliseconds.
  confirmed boolean not null, usable_until bigint not null, forgotten_at bigint not null,
  client_generation integer not null default 0, -- The client's generation at approval or first refresh after renewal.
  since_rotation integer not null default 0 -- The first rotation with `client_generation`.
);
create index authorizations_forgotten_at on authorizations (forgotten_at);

-- A row counts attempts of one kind by one visitor. rate-limiter-flexible prescribes the columns and their order.
create table rate_limits (
  key text primary key, -- The name of the limit and a hash.
  points integer not null default 0,
  expire bigint -- In milliseconds since the epoch.
);
create index rate_limits_expire on rate_limits (expire);

-- Sign-in

-- A row is a session of a person in a browser. A session in the token store is valid only with its row.
create table browser_sessions (
  uid text primary key,
  account_id text not null references accounts on delete cascade,
  cookie_hash text not null, -- Hash of the latest cookie value: earlier ones are invalid, even in a restored store.
  generation bigint not null, begun_at timestamptz not null,
  ended_at timestamptz, -- Null until the user signs out, in this browser or from another one.
  address text not null, browser text not null
);
create index browser_sessions_account_id on browser_sessions (account_id, begun_at desc);
create index browser_sessions_begun_at on browser_sessions (begun_at);
-- The indexed expression is that of accounts/session-list.ts.
create index browser_sessions_public_id on browser_sessions
  (('ses_' || translate(left(encode(sha256(decode(uid, 'escape')), 'base64'), 16), '+/', '-_')));

-- A row is a one-time link with which a person sets a password, or signs in if the service has no passwords.
create table password_links (
  token_hash text primary key,
  account_id text not null references accounts on delete cascade,
  -- confirmed: for a person who has just re-authenticated with a provider; valid only while their session is active.
  purpose text not null check (purpose in ('invitation', 'forgotten', 'confirmed')),
  session_uid text check ((session_uid is not null) = (purpose = 'confirmed')),
  session_generation bigint check ((session_generation is not null) = (purpose = 'confirmed')),
  created_at timestamptz not null, expires_at timestamptz not null
);
create index password_links_account_id on password_links (account_id);
create index password_links_expires_at on password_links (expires_at);

-- A suspension deletes the links. So does a new passkey or linked account, because a stranger who got a link before the
-- owner of the account first signed in must not set a password later.
create function forget_password_links() returns trigger language plpgsql as $$ begin
  delete from password_links where account_id = to_jsonb(new) ->> tg_argv[0];
  return null;
end $$;
create trigger accounts_suspended after update of suspended_at on accounts for each row
  when (old.suspended_at is null and new.suspended_at is not null) execute function forget_password_links('id');

-- A row is the account of a person at a sign-in provider, with which the person signs in here.
create table account_identities (
  issuer text not null,
  subject text not null, -- The id of the person at the issuer, which never changes (OpenID Connect Core, 5.7).
  account_id text not null references accounts on delete cascade,
  created_at timestamptz not null, last_used_at timestamptz,
  primary key (issuer, subject),
  -- A second subject of one issuer is another person, even with the same email address.
  constraint account_identities_account_id_issuer_key unique (account_id, issuer)
);
create trigger account_identities_added after insert on account_identities
  for each row execute function forget_password_links('account_id');

-- A row is a passkey: a public key with which a person signs in (Web Authentication).
create table passkeys (
  id text primary key,
  credential_id text not null unique, -- The authenticator's id for the passkey, in base64url.
  account_id text not null references accounts on delete cascade,
  public_key text not null, -- A COSE_Key, in base64url.
  counter bigint not null, -- The number of signatures of the authenticator; 0 if it does not count them.
  transports text[] not null,
  may_sync boolean not null, -- True if copies may exist outside of the device; never changes.
  is_synced boolean not null,
  name text not null, created_at timestamptz not null, last_used_at timestamptz
);
create index passkeys_account_id on passkeys (account_id);
create trigger passkeys_added after insert on passkeys
  for each row execute function forget_password_links('account_id');

-- A row is a challenge that was answered. Each challenge is accepted only once.
create table used_challenges (challenge_hash text primary key, expires_at timestamptz not null);
create index used_challenges_expires_at on used_challenges (expires_at);

-- Activity and problems

-- A row is something that happened: an entry of a person's activity and of the operator's audit log.
create table activity (
  id bigint generated always as identity primary key,
  at timestamptz not null,
  -- The person in whose activity it is listed; null if it concerns no person. No reference: it outlives the account.
  account_id text,
  actor text not null check (actor in ('person', 'operator', 'client', 'service', 'organization')),
  action text not null, details jsonb not null, address text, browser text,
  operator text, reason text, -- For operator commands: the account of the operating system, and the given reason.
  request_id text, -- Null for operator commands.
  -- Ids are committed out of order: a reader that remembers only an id would miss entries of slow transactions.
  xact xid8 not null default pg_current_xact_id()
);
create index activity_account_id on activity (account_id, id desc);
create index activity_at on activity (at);
-- This index leaves out frequent actions, because their latest entries are found quickly without an index.
create index activity_rare_action on activity (action, id desc)
  where action <> 'signed_in' and action <> 'connected' and action <> 'disconnected' and action <> 'tokens_revoked'
    and action <> 'authorized_silently';
-- Entries about the end of something, found by its id or last characters. Each search also reads all entries that are
-- not yet in the tree of the index, so their list is limited to 128 kB.
create index activity_ends on activity using gin (details jsonb_path_ops) with (gin_pending_list_limit = 128)
  where action in ('api_key_revoked', 'passkey_removed', 'signed_out_elsewhere', 'organization_removed',
    'warehouse_removed', 'client_secret_removed', 'client_renewed');
create index activity_other_actor on activity (actor, id desc) where actor <> 'person';
create index activity_client_id on activity ((details ->> 'client_id'), id desc)
  where details ->> 'client_id' is not null;
create index activity_import_id on activity ((details ->> 'import_id'), id desc)
  where details ->> 'import_id' is not null;
create index activity_by_account_id on activity ((details ->> 'by_account_id'), id)
  where details ->> 'by_account_id' is not null;
create index activity_person_id on activity ((details ->> 'person_id'), id) where details ->> 'person_id' is not null;
-- Renewals of a client, for the activity of all people who have connected it.
create index activity_renewals on activity ((details ->> 'client_id'), id) where action = 'client_renewed';
create index activity_request_id on activity (request_id) where request_id is not null;
create index activity_xact on activity (xact, id);

-- Identifies the counter of transactions: another cluster has another counter, and a copy of the database in the same
-- cluster has another log.
create function audit_origin() returns text language sql stable as $$
  select system_identifier || '/' ||
      (select oid from pg_database where datname = current_database())
    from pg_control_system()
$$;

-- The only row identifies the log to which cursors belong.
create table audit_generation (
  is_the_only_one boolean primary key default true check (is_the_only_one),
  generation text not null, -- Part of each cursor. Changes when the database is restored into another cluster.
  origin text not null,
  old_until bigint not null default 0, -- Entries up to this id are older than the generation: all are committed.
  first_xact xid8 not null default '0' -- The first transaction of the generation.
);
insert into audit_generation (generation, origin)
  values (left(replace(gen_random_uuid()::text, '-', ''), 12), audit_origin());

-- A row is a deleted account whose entries in the activity are not all erased yet.
create table erased_people (
  account_id text primary key,
  after_id bigint not null default 0 -- The id of the last erased entry; 0 before the first one.
);

-- A row is a refused request of a client, which its owner sees for a few days.
create table client_requests (
  id bigint generated always as identity primary key,
  client_id text not null references clients on delete cascade,
  at timestamptz not null,
  step text not null check (step in ('authorize', 'token')),
  grant_type text,
  error text not null, cause text not null,
  redirect_uri text, -- As the client sent it, without the values of its query; null if the client sent none.
  -- Null at the authorize step, where no client authenticates.
  auth_method text check (auth_method in ('basic', 'body', 'both', 'none')),
  scope text, -- As the client sent it; null if the client sent none.
  request_id text not null,
  -- A new request removes only requests with the same share (see `Share` in clients/client-requests.ts).
  share text not null check (share in ('owner', 'client', 'stranger'))
);
create index client_requests_client_id on client_requests (client_id, id desc);
create index client_requests_at on client_requests (at);
create index client_requests_request_id on client_requests (request_id);

-- Import

-- A row is a running import or dry run; at most one of them writes. Advisory locks would not work, because all
-- connections of the embedded database share one session. This table and the next one are unlogged: a crash of the
-- server empties both, so that no import continues without its lines.
create unlogged table import_runs (
  id text primary key, writes boolean not null,
  started_at timestamptz not null, expires_at timestamptz not null
);
create unique index import_runs_one_writer on import_runs (writes) where writes;

-- A row is a line of a file that is being imported.
create unlogged table import_lines (
  import_id text not null,
  type text not null, number integer not null,
  key text not null, -- The external id of the record, or those of its account and place with U+001F between them.
  account text, place text, -- The external ids that the line names; the place of a warehouse is its organization.
  former text, home text, -- The former external id, and the external id of the former organization.
  email_key text, identity text,
  id text, -- For an account or place: the id of its record, a new id, or null if deleted later than the file.
  line jsonb, -- Null if the line is invalid.
  primary key (import_id, type, number)
);
-- An import analyzes the table after it has filled the table. A small sample is enough, and is much faster to sort.
alter table import_lines alter import_id set statistics 10, alter type set statistics 10,
  alter number set statistics 10, alter key set statistics 10, alter former set statistics 10,
  alter home set statistics 10, alter email_key set statistics 10, alter identity set statistics 10,
  alter id set statistics 10;
-- The indexes that find the first line end with the number. Without the number, the planner would read the primary key.
create index import_lines_key on import_lines (import_id, type, key, number);
create index import_lines_id on import_lines (import_id, id) where id is not null;
create index import_lines_moves on import_lines (import_id, type, number) where home is not null;
create index import_lines_email_key on import_lines (import_id, type, email_key, number) where email_key is not null;
create index import_lines_former on import_lines (import_id, type, former, number) where former is not null;
create index import_lines_identity on import_lines (import_id, type, identity, number) where identity is not null;

-- A row is a set of records that an import found in its file, and the latest time at which such a file named all of them.
create table known_files (id text primary key, as_of timestamptz not null);

-- A row is the time of the latest change of a record by a line, a file, a command or a page, so that an older line or
-- file does not overwrite it.
create table known_times (
  -- The type and ids of the record; for a deleted account or place, one of its former names. Two other keys make only a
  -- part of an older line outdated: the end of a person's link, and the time when an address got or lost its account.
  thing text primary key,
  account_id text references accounts on delete cascade,
  organization_id text references organizations on delete cascade,
  warehouse_id text references warehouses on delete cascade,
  as_of timestamptz not null,
  by_import boolean not null, -- True if an import wrote the row. A later import overwrites it even with an older file.
  file_id text references known_files, -- The set that contains the record; its time applies to the record, too.
  -- The latest as_of of a removal. Older lines about records that depended on this one are outdated.
  ended_as_of timestamptz,
  expires_at timestamptz -- When to delete the row; null while the record exists.
);
create index known_times_account_id on known_times (account_id, organization_id) where account_id is not null;
create index known_times_organization_id on known_times (organization_id) where organization_id is not null;
create index known_times_warehouse_id on known_times (warehouse_id) where warehouse_id is not null;
create index known_times_pushed on known_times (as_of) where not by_import;
create index known_times_ended on known_times (ended_as_of) where ended_as_of is not null;
create index known_times_file_id on known_times (file_id, thing) where file_id is not null;
create index known_times_expires_at on known_times (expires_at) where expires_at is not null;

-- Records the end of a row that is deleted by hand, as changes/times.ts does for a change by the service. The first
-- argument is the type of the record, the second one, for access, the column with the id of its place.
create function record_end() returns trigger language plpgsql as $$ declare
  ended jsonb := to_jsonb(old);
  things text[];
begin
  if tg_nargs = 1 then
    things := array['external ' || (ended ->> 'external_id'), 'id ' || (ended ->> 'id'),
      'email ' || translate(encode(sha256(convert_to(ended ->> 'email_key', 'UTF8')), 'base64'), '+/=', '-_')];
    things := array(select concat_ws(' ', 'deleted', tg_argv[0], name) from unnest(things) name where name is not null);
    ended := '{}'; -- Store no ids: a row with the id of a deleted place would be deleted, too.
  -- Record nothing if the person or place is deleted as well: the end of the person or place is recorded.
  elsif exists (select from accounts where id = ended ->> 'account_id')
      and exists (select from organizations where id = ended ->> 'organization_id')
      and (not ended ? 'warehouse_id' or exists (select from warehouses where id = ended ->> 'warehouse_id')) then
    things := array[concat_ws(' ', tg_argv[0], ended ->> 'account_id', ended ->> tg_argv[1])];
  end if;
  if things is null then return null; end if;
  insert into known_times
      (thing, account_id, organization_id, warehouse_id, as_of, by_import, ended_as_of, expires_at)
    select known.thing, ended ->> 'account_id', ended ->> 'organization_id', ended ->> 'warehouse_id',
        made.at, false, made.at, made.at + interval '30 days'
      from unnest(things) known (thing), lateral (
        -- Another system may have sent a time that is ahead of the clock.
        select greatest(clock_timestamp(), max(greatest(k.as_of, f.as_of)) + interval '1 ms') as at
          from known_times k left join known_files f on f.id = k.file_id where k.thing = known.thing) made
    on conflict (thing) do update set as_of = excluded.as_of, ended_as_of = excluded.ended_as_of,
      by_import = false, file_id = null, expires_at = excluded.expires_at;
  return null;
end $$;

-- The service sets gatehouse.changes in each transaction in which it records ends itself (changes/engine.ts).
create trigger accounts_ended after delete on accounts for each row
  when (current_setting('gatehouse.changes', true) is distinct from 'on'
    and old.email not like 'doctor-%@gatehouse.invalid') -- No line names the accounts of the doctor.
  execute function record_end('account');
create trigger organizations_ended after delete on organizations for each row
  when (current_setting('gatehouse.changes', true) is distinct from 'on') execute function record_end('organization');
create trigger warehouses_ended after delete on warehouses for each row
  when (current_setting('gatehouse.changes', true) is distinct from 'on') execute function record_end('warehouse');
create trigger organization_memberships_ended after delete on organization_memberships for each row
  when (current_setting('gatehouse.changes', true) is distinct from 'on')
  execute function record_end('membership', 'organization_id');
create trigger warehouse_rights_ended after delete on warehouse_rights for each row
  when (current_setting('gatehouse.changes', true) is distinct from 'on')
  execute function record_end('warehouse_rights', 'warehouse_id');

-- A row counts removals that were pushed at one time. The sum of these counts in the last hour is limited.
create table pushed_removals (
  at timestamptz not null,
  removals integer not null -- Negative for removals that an operator allows on top of the limit.
);
create index pushed_removals_at on pushed_removals (at);

-- Operation

-- A row is a node that runs. A node that stops deletes its row; other nodes delete the row of a node that was killed.
create table node_keys (
  node text primary key,
  seen_at timestamptz not null, noted_at timestamptz not null, -- Last heartbeat by the clocks of node and database.
  cookie_keys text[] not null, token_keys text[] not null, -- Fingerprints of its keys, the current ones first.
  state text not null, -- starting, ready, not_ready or leaving
  ready_since timestamptz,
  runs_with jsonb not null -- The version, settings and limits of the node (storage/nodes.ts).
);

-- The only row is updated to find out whether the server can write.
create table write_probe (at timestamptz not null);
insert into write_probe values (now());

-- Fails if the disk is full, which an update of one row would not notice for a long time, because its page has room.
-- The result does not fit into the query's memory, so it is written to a file next to the tables, which is deleted
-- afterwards.
create function fill_temporary_file() returns boolean language sql volatile
  set work_mem = '64kB' set temp_tablespaces = ''
  as $$ select count(*) > 0 from unnest(array_fill(repeat('x', 1000), array[100])) $$;

-- The fingerprint of this file, by which a database that an earlier commit created is recognized (storage/migrate.ts).
do $$ begin
  execute format('comment on table gatehouse_migrations is %L', current_setting('gatehouse.schema'));
end $$;
