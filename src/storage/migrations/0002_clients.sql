-- Clients of every kind and their secrets.
-- Up Migration

create table clients (
  id text primary key,
  kind text not null check (kind in ('confidential', 'public', 'machine', 'resource-server')),
  name text not null,
  -- Restricts: a client must be transferred or deleted before its owner's account can go.
  owner_account_id text constraint clients_owner_account_id_fkey references accounts,
  redirect_uris text[] not null,
  native boolean not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  suspended_at timestamptz,
  constraint clients_native_is_public check (not native or kind = 'public'),
  constraint clients_redirects_people check (
    (kind in ('confidential', 'public')) = (cardinality(redirect_uris) > 0)
  )
);
create index clients_owner_account_id on clients (owner_account_id);

create table client_secrets (
  id text primary key,
  client_id text not null references clients on delete cascade,
  secret_hash text not null,
  last_four text not null,
  created_at timestamptz not null,
  last_used_at timestamptz
);
create index client_secrets_client_id on client_secrets (client_id);

-- A machine client has memberships of its own, like a person.
alter table organization_memberships
  add constraint organization_memberships_client_id_fkey
  foreign key (client_id) references clients on delete cascade;

create trigger clients_changed after insert or update or delete or truncate on clients
  for each statement execute function notify_gatehouse_changes('clients');
-- Not for last_used_at: every use of a secret would make every node forget every client.
create trigger client_secrets_changed
  after insert or update of secret_hash or delete or truncate on client_secrets
  for each statement execute function notify_gatehouse_changes('clients');

-- Down Migration

alter table organization_memberships drop constraint organization_memberships_client_id_fkey;
delete from organization_memberships where client_id is not null;
drop table client_secrets, clients;
