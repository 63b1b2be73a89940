-- People, the organizations and warehouses access is about, and who may reach what.
-- Up Migration

-- Tells every node which topic changed (storage/change-feed.ts), so that none answers from memory
-- what is no longer true. Identical notifications of one transaction are sent once.
create function notify_gatehouse_changes() returns trigger language plpgsql as $$
begin
  perform pg_notify('gatehouse_changes', tg_argv[0]);
  return null;
end
$$;

create table accounts (
  id text primary key,
  email text not null,
  name text not null,
  password_hash text,
  created_at timestamptz not null,
  suspended_at timestamptz
);
create unique index accounts_email_key on accounts (lower(email));

create table organizations (
  id text primary key,
  name text not null,
  created_at timestamptz not null
);

create table warehouses (
  id text primary key,
  organization_id text not null
    constraint warehouses_organization_id_fkey references organizations on delete cascade,
  name text not null,
  created_at timestamptz not null,
  constraint warehouses_organization_id_id_key unique (organization_id, id)
);

-- 0002 lets client_id refer to clients, which do not exist yet.
create table organization_memberships (
  id bigint generated always as identity primary key,
  account_id text
    constraint organization_memberships_account_id_fkey references accounts on delete cascade,
  client_id text,
  organization_id text not null
    constraint organization_memberships_organization_id_fkey
    references organizations on delete cascade,
  role text not null check (role in ('owner', 'admin', 'member', 'viewer')),
  created_at timestamptz not null,
  constraint organization_memberships_one_subject check (num_nonnulls(account_id, client_id) = 1),
  constraint organization_memberships_account_key unique (account_id, organization_id),
  constraint organization_memberships_client_key unique (client_id, organization_id)
);
create index organization_memberships_organization_id on organization_memberships (organization_id);

-- Rights stand on a membership of the same subject in the same organization and end with it. Of the
-- two references to memberships the one whose subject is null does not apply (MATCH SIMPLE).
create table warehouse_rights (
  id bigint generated always as identity primary key,
  account_id text,
  client_id text,
  organization_id text not null,
  warehouse_id text not null,
  rights text[] not null
    check (rights <@ array['read', 'write', 'manage'] and cardinality(rights) > 0),
  constraint warehouse_rights_one_subject check (num_nonnulls(account_id, client_id) = 1),
  constraint warehouse_rights_account_key unique (account_id, warehouse_id),
  constraint warehouse_rights_client_key unique (client_id, warehouse_id),
  constraint warehouse_rights_warehouse_fkey foreign key (organization_id, warehouse_id)
    references warehouses (organization_id, id) on delete cascade,
  constraint warehouse_rights_account_membership_fkey foreign key (account_id, organization_id)
    references organization_memberships (account_id, organization_id) on delete cascade,
  constraint warehouse_rights_client_membership_fkey foreign key (client_id, organization_id)
    references organization_memberships (client_id, organization_id) on delete cascade
);
create index warehouse_rights_warehouse on warehouse_rights (organization_id, warehouse_id);

create trigger accounts_changed after insert or update or delete or truncate on accounts
  for each statement execute function notify_gatehouse_changes('accounts');
create trigger organizations_changed after insert or update or delete or truncate on organizations
  for each statement execute function notify_gatehouse_changes('access');
create trigger warehouses_changed after insert or update or delete or truncate on warehouses
  for each statement execute function notify_gatehouse_changes('access');
create trigger organization_memberships_changed
  after insert or update or delete or truncate on organization_memberships
  for each statement execute function notify_gatehouse_changes('access');
create trigger warehouse_rights_changed
  after insert or update or delete or truncate on warehouse_rights
  for each statement execute function notify_gatehouse_changes('access');

-- Down Migration

drop table warehouse_rights, organization_memberships, warehouses, organizations, accounts;
drop function notify_gatehouse_changes();
