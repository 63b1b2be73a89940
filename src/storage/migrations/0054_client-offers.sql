-- Owners hand clients over: open offers, and since when and from whom an owner has a client.
-- Up Migration

alter table clients
  -- Null for the first owner, who has had it since it was created.
  add column owned_since timestamptz,
  -- The owner who handed it over; null if the operator transferred it.
  add column handed_over_by text references accounts on delete set null;
create index clients_handed_over_by on clients (handed_over_by) where handed_over_by is not null;

create table client_offers (
  id text primary key,
  client_id text not null unique references clients on delete cascade,
  from_account_id text not null references accounts on delete cascade,
  -- As it was typed. The owner is not shown whether there is such an account.
  email text not null,
  to_account_id text references accounts on delete set null,
  expires_at timestamptz not null
);
create index client_offers_from_account_id on client_offers (from_account_id);
create index client_offers_to_account_id on client_offers (to_account_id);
create index client_offers_expires_at on client_offers (expires_at);

-- For every change of the owner, also by a node of the version before.
create function change_client_owner() returns trigger language plpgsql as $$
begin
  new.owned_since := new.updated_at;
  new.handed_over_by := null;
  return new;
end
$$;
create trigger clients_owner_changed before update of owner_account_id on clients
  for each row when (old.owner_account_id is distinct from new.owner_account_id)
  execute function change_client_owner();

-- A suspension ends the offers of the client or of the owner, and so does a new password: an offer
-- that an attacker made does not survive the recovery of the account.
create function end_client_offers() returns trigger language plpgsql as $$
begin
  delete from client_offers where client_id = new.id or from_account_id = new.id;
  return null;
end
$$;
create trigger clients_end_offers after update of owner_account_id, suspended_at on clients
  for each row when (old.owner_account_id is distinct from new.owner_account_id
    or (old.suspended_at is null and new.suspended_at is not null))
  execute function end_client_offers();
create trigger accounts_end_client_offers after update of password_hash, suspended_at on accounts
  for each row when (old.password_hash is distinct from new.password_hash
    or (old.suspended_at is null and new.suspended_at is not null))
  execute function end_client_offers();

-- Down Migration

drop trigger accounts_end_client_offers on accounts;
drop trigger clients_end_offers on clients;
drop trigger clients_owner_changed on clients;
drop function end_client_offers();
drop function change_client_owner();
drop table client_offers;
alter table clients drop column handed_over_by, drop column owned_since;
