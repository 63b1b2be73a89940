-- Which grants were revoked, when and why: what is gone from the token store can still be explained.
-- Up Migration

create table revoked_grants (
  grant_id text primary key,
  at timestamptz not null,
  cause text not null,
  -- No foreign keys: it outlives the connection, the client and the account.
  account_id text not null,
  client_id text not null
);
create index revoked_grants_at on revoked_grants (at);

-- Down Migration

drop table revoked_grants;
