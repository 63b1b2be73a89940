-- What happened to an account and who may do what: a person's security log, and the operator's audit.
-- Up Migration

create table activity (
  id bigint generated always as identity primary key,
  at timestamptz not null,
  -- Whose log it is in; null for what concerns no person. No foreign key: it outlives the account.
  account_id text,
  actor text not null check (actor in ('person', 'operator', 'client', 'service')),
  action text not null,
  details jsonb not null,
  address text,
  browser text
);
create index activity_account_id on activity (account_id, id desc);
create index activity_at on activity (at);

-- Sessions begun under an earlier generation are over: signed out everywhere, password changed.
alter table accounts add column session_generation integer not null default 0;

-- Down Migration

alter table accounts drop column session_generation;
drop table activity;
