-- Owners no longer hand clients over themselves: the operator transfers a client (`clients transfer`).
-- Up Migration

create or replace function change_client_owner() returns trigger language plpgsql as $$
begin
  -- A node whose clock was ahead may have created a secret of the former owner. Each value is a new
  -- one: consents are compared with it.
  new.owned_since := greatest(new.updated_at, old.owned_since + interval '1 millisecond',
    (select max(created_at) from client_secrets where client_id = new.id));
  return new;
end
$$;
create or replace function end_every_session() returns trigger language plpgsql as $$
begin
  -- Notify each node, but only once.
  perform pg_notify('gatehouse_named_changes', 'everything');
  return null;
end
$$;
drop trigger accounts_end_client_offers on accounts;
drop trigger clients_end_offers on clients;
drop function end_client_offers();
drop table client_offers;
alter table clients drop column handed_over_by;

-- Down Migration

alter table clients add column handed_over_by text references accounts on delete set null;
create index clients_handed_over_by on clients (handed_over_by) where handed_over_by is not null;
create table client_offers (
  id text primary key,
  client_id text not null unique references clients on delete cascade,
  from_account_id text not null references accounts on delete cascade,
  email text not null,
  to_account_id text references accounts on delete set null,
  expires_at timestamptz not null
);
create index client_offers_from_account_id on client_offers (from_account_id);
create index client_offers_to_account_id on client_offers (to_account_id);
create index client_offers_expires_at on client_offers (expires_at);
create function end_client_offers() returns trigger language plpgsql as $$
begin
  delete from client_offers where client_id = new.id or from_account_id = new.id;
  return null;
end
$$;
create trigger clients_end_offers
  after update of owner_account_id, suspended_at, name, redirect_uris on clients
  for each row when (old.owner_account_id is distinct from new.owner_account_id
    or (old.suspended_at is null and new.suspended_at is not null)
    or old.name <> new.name or old.redirect_uris <> new.redirect_uris)
  execute function end_client_offers();
create trigger accounts_end_client_offers
  after update of session_generation, suspended_at on accounts
  for each row when (old.session_generation <> new.session_generation
    or (old.suspended_at is null and new.suspended_at is not null))
  execute function end_client_offers();
create or replace function end_every_session() returns trigger language plpgsql as $$
begin
  delete from client_offers;
  perform pg_notify('gatehouse_named_changes', 'everything');
  return null;
end
$$;
create or replace function change_client_owner() returns trigger language plpgsql as $$
begin
  new.owned_since := greatest(new.updated_at,
    (select max(created_at) from client_secrets where client_id = new.id));
  new.handed_over_by := null;
  return new;
end
$$;
