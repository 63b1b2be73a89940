-- Accounts that people have elsewhere, with which they sign in here, and the sessions that came of it.
-- Up Migration

create table account_identities (
  issuer text not null,
  -- What the issuer calls the person, for good (OpenID Connect Core, 5.7).
  subject text not null,
  account_id text not null
    constraint account_identities_account_id_fkey references accounts on delete cascade,
  created_at timestamptz not null,
  -- When somebody last signed in with it.
  last_used_at timestamptz,
  constraint account_identities_pkey primary key (issuer, subject),
  -- A second subject of one issuer is somebody else, whatever it says its address is.
  constraint account_identities_account_id_issuer_key unique (account_id, issuer)
);

-- What a sign-out there ends here.
create table upstream_sessions (
  uid text constraint upstream_sessions_pkey primary key,
  issuer text not null,
  subject text not null,
  -- Of the session there, where the issuer names it.
  sid text,
  expires_at timestamptz not null,
  -- The session is over, and may still have to be taken out of the token store.
  ended_at timestamptz
);
create index upstream_sessions_ended_at on upstream_sessions (ended_at) where ended_at is not null;
create index upstream_sessions_subject on upstream_sessions (issuer, subject);
create index upstream_sessions_sid on upstream_sessions (issuer, sid) where sid is not null;
create index upstream_sessions_expires_at on upstream_sessions (expires_at);

-- Each counts once (OpenID Connect Back-Channel Logout, 2.6).
create table logout_tokens (
  token_hash text constraint logout_tokens_pkey primary key,
  expires_at timestamptz not null
);
create index logout_tokens_expires_at on logout_tokens (expires_at);

-- Down Migration

drop table logout_tokens;
drop table upstream_sessions;
drop table account_identities;
