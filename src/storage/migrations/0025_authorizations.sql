-- An authorization is one record, and counts only while it has the generation of its connection.
-- Tokens of before are not known any more; people, clients and connections stay.
-- Up Migration

drop table connection_grants, refresh_families;
delete from token_records where kind not in ('session', 'interaction', 'shown_once', 'machine_token');
alter table token_records drop column consumed_by;

-- Where no Redis is configured. Times are seconds since the epoch but for rotated_at, milliseconds.
create table authorizations (
  key text primary key,
  account_id text not null,
  client_id text not null,
  -- Of its connection when it was approved; null for a test, which belongs to none.
  generation integer,
  secret text not null,
  redirect_uri_hash text not null,
  code_challenge_hash text,
  approved_at bigint not null,
  ends_at bigint,
  -- -1 until its code is exchanged.
  rotation integer not null,
  attempt text not null,
  rotated_at bigint not null,
  confirmed boolean not null,
  usable_until bigint not null,
  forgotten_at bigint not null
);
create index authorizations_forgotten_at on authorizations (forgotten_at);

-- A connection stays when it is ended: its generation is what ended its authorizations.
alter table connections
  add column generation integer not null default 1,
  add column ended_at timestamptz,
  add column ended_cause text;

alter table revoked_grants rename to ended_authorizations;
alter table ended_authorizations rename column grant_id to id;
alter index revoked_grants_at rename to ended_authorizations_at;

-- Down Migration

alter index ended_authorizations_at rename to revoked_grants_at;
alter table ended_authorizations rename column id to grant_id;
alter table ended_authorizations rename to revoked_grants;
delete from connections where ended_at is not null;
alter table connections drop column generation, drop column ended_at, drop column ended_cause;
drop table authorizations;
alter table token_records add column consumed_by text;
create table refresh_families (
  key text primary key,
  rotation integer not null,
  attempt text not null,
  rotated_at bigint not null,
  expires_at bigint not null,
  data json not null
);
create index refresh_families_expires_at on refresh_families (expires_at);
create table connection_grants (
  grant_id text primary key,
  account_id text not null,
  client_id text not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  constraint connection_grants_connection_fkey foreign key (account_id, client_id)
    references connections on delete cascade
);
create index connection_grants_connection on connection_grants (account_id, client_id);
create index connection_grants_expires_at on connection_grants (expires_at);
