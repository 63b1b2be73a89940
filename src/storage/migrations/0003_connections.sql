-- Which person connected which client, what they were shown when they approved, and their grants.
-- Up Migration

create table connections (
  account_id text not null references accounts on delete cascade,
  client_id text not null references clients on delete cascade,
  connected_at timestamptz not null,
  last_used_at timestamptz,
  consented_name text not null,
  consented_hosts text[] not null,
  primary key (account_id, client_id)
);
create index connections_client_id on connections (client_id);

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

-- Down Migration

drop table connection_grants, connections;
