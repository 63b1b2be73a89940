-- Passkeys: public keys with which people sign in (Web Authentication).
-- Up Migration

-- Under which authenticators keep the passkeys of an account: random, and the same for good.
create table passkey_users (
  account_id text constraint passkey_users_pkey primary key
    constraint passkey_users_account_id_fkey references accounts on delete cascade,
  handle text not null constraint passkey_users_handle_key unique
);

create table passkeys (
  id text constraint passkeys_pkey primary key,
  -- As its authenticator calls it, in base64url.
  credential_id text not null constraint passkeys_credential_id_key unique,
  account_id text not null
    constraint passkeys_account_id_fkey references accounts on delete cascade,
  -- COSE_Key, in base64url.
  public_key text not null,
  -- Of the signatures that its authenticator made; 0 where it counts none.
  counter bigint not null,
  transports text[] not null,
  -- Whether a copy may be kept outside of the device, which never changes, and whether one is.
  may_sync boolean not null,
  is_synced boolean not null,
  -- The model of the authenticator, as far as it says.
  aaguid text not null,
  name text not null,
  created_at timestamptz not null,
  last_used_at timestamptz
);
create index passkeys_account_id on passkeys (account_id);

-- Each counts once.
create table used_challenges (
  challenge_hash text constraint used_challenges_pkey primary key,
  expires_at timestamptz not null
);
create index used_challenges_expires_at on used_challenges (expires_at);

-- Down Migration

drop table used_challenges;
drop table passkeys;
drop table passkey_users;
