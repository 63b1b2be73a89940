-- What ends an offer of a client, which secrets a former owner knows, and two indexes.
-- Up Migration

-- The receiver accepts what their page showed: a change of the name or the redirect URIs ends the
-- offer. Every recovery of an account raises its session generation, also one without a password;
-- the same password with another hash does not.
create or replace trigger clients_end_offers
  after update of owner_account_id, suspended_at, name, redirect_uris on clients
  for each row when (old.owner_account_id is distinct from new.owner_account_id
    or (old.suspended_at is null and new.suspended_at is not null)
    or old.name <> new.name or old.redirect_uris <> new.redirect_uris)
  execute function end_client_offers();
create or replace trigger accounts_end_client_offers
  after update of session_generation, suspended_at on accounts
  for each row when (old.session_generation <> new.session_generation
    or (old.suspended_at is null and new.suspended_at is not null))
  execute function end_client_offers();

-- A node whose clock was ahead may have created a secret of the former owner.
create or replace function change_client_owner() returns trigger language plpgsql as $$
begin
  new.owned_since := greatest(new.updated_at,
    (select max(created_at) from client_secrets where client_id = new.id));
  new.handed_over_by := null;
  return new;
end
$$;

-- For the trigger of 0052, which a node of an older version runs at each heartbeat.
create index connections_limited on connections (account_id)
  where limit_places is not null or limit_read_only or limit_until is not null;

-- The expression of accounts/session-list.ts.
create index browser_sessions_public_id on browser_sessions
  (('ses_' || translate(left(encode(sha256(decode(uid, 'escape')), 'base64'), 16), '+/', '-_')));

-- Down Migration

drop index browser_sessions_public_id;
drop index connections_limited;
create or replace function change_client_owner() returns trigger language plpgsql as $$
begin
  new.owned_since := new.updated_at;
  new.handed_over_by := null;
  return new;
end
$$;
create or replace trigger accounts_end_client_offers
  after update of password_hash, suspended_at on accounts
  for each row when (old.password_hash is distinct from new.password_hash
    or (old.suspended_at is null and new.suspended_at is not null))
  execute function end_client_offers();
create or replace trigger clients_end_offers after update of owner_account_id, suspended_at on clients
  for each row when (old.owner_account_id is distinct from new.owner_account_id
    or (old.suspended_at is null and new.suspended_at is not null))
  execute function end_client_offers();
