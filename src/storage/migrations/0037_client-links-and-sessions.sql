-- What people see of a client beside its name, where each of them is signed in, and what they do not
-- want to be mailed.
-- Up Migration

alter table clients
  add column homepage_url text,
  add column support_url text,
  add column privacy_url text,
  -- When the operator looked at it as it is now. A change by anybody takes it away.
  add column verified_at timestamptz;

-- Uids of sessions that were signed out from elsewhere, while they could still count: each node hears
-- of it with the account.
alter table accounts
  add column ended_sessions text[] not null default '{}',
  add column unwanted_mail text[] not null default '{}';

-- Sessions by their beginning. Whether one is still alive, the token store knows.
create table browser_sessions (
  uid text primary key,
  account_id text not null references accounts on delete cascade,
  generation integer not null,
  begun_at timestamptz not null,
  address text not null,
  browser text not null
);
create index browser_sessions_account_id on browser_sessions (account_id, begun_at desc);
create index browser_sessions_begun_at on browser_sessions (begun_at);

-- Down Migration

drop table browser_sessions;
alter table accounts drop column ended_sessions, drop column unwanted_mail;
alter table clients
  drop column homepage_url,
  drop column support_url,
  drop column privacy_url,
  drop column verified_at;
