-- What names of organizations look like, and to which other clients of an owner a bar extends.
-- Up Migration

-- Filled in by the service when it compares names: `key` is null until then. In a table of its own,
-- because every update of an organization makes all nodes forget who reaches what.
create table organization_name_keys (
  organization_id text primary key references organizations on delete cascade,
  name text not null,
  key text
);
insert into organization_name_keys (organization_id, name) select id, name from organizations;
create index organization_name_keys_key on organization_name_keys (key);
create index organization_name_keys_missing on organization_name_keys (organization_id)
  where key is null;

-- Whoever writes the name: a node of the version before, an import, another program.
create function forget_organization_name_key() returns trigger language plpgsql as $$
begin
  insert into organization_name_keys (organization_id, name) values (new.id, new.name)
    on conflict (organization_id) do update set name = excluded.name, key = null;
  return null;
end
$$;
create trigger organizations_renamed after insert or update of name on organizations
  for each row execute function forget_organization_name_key();

create index clients_verified on clients (id) where verified_at is not null;

-- Barred because another client of its owner is, at one of the same redirect hosts.
alter table barred_clients add column follows boolean not null default false;

-- Whose clients at which redirect URIs an organization barred. It outlives the client: otherwise its
-- owner would delete it and register it again.
create table barred_redirects (
  organization_id text not null references organizations on delete cascade,
  client_id text not null,
  owner_account_id text not null references accounts on delete cascade,
  redirect_uris text[] not null,
  -- The owner or admin who barred the first of them.
  barred_by text references accounts on delete set null,
  primary key (organization_id, client_id)
);
create index barred_redirects_owner_account_id on barred_redirects (owner_account_id);
insert into barred_redirects (organization_id, client_id, owner_account_id, redirect_uris, barred_by)
  select b.organization_id, c.id, c.owner_account_id, c.redirect_uris, b.barred_by
  from barred_clients b join clients c on c.id = b.client_id
  where c.owner_account_id is not null;

-- Down Migration

drop table barred_redirects;
alter table barred_clients drop column follows;
drop index clients_verified;
drop trigger organizations_renamed on organizations;
drop function forget_organization_name_key();
drop table organization_name_keys;
