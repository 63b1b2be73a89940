-- What is ended again in a token store that lost its last writes, and how far that has come.
-- Up Migration

-- Machine access tokens that were ended before they expired, by the hash under which Redis keeps them.
create table ended_machine_tokens (
  key text primary key,
  client_id text not null,
  at timestamptz not null,
  expires_at timestamptz not null
);
create index ended_machine_tokens_expiry on ended_machine_tokens (expires_at);

-- One row: everything recorded before "until" is ended in the token store. One node at a time sees
-- to the rest, until its turn is over.
create table ends_carried_out (
  is_only boolean primary key default true check (is_only),
  until timestamptz not null default now(),
  node text not null default '',
  turn_until timestamptz not null default '-infinity'
);
insert into ends_carried_out default values;

-- Down Migration

drop table ends_carried_out;
drop table ended_machine_tokens;
