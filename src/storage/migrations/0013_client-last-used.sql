-- When a client last did something here: its secrets come and go, and public clients have none.
-- Up Migration

alter table clients add column last_used_at timestamptz;

-- Not for last_used_at: every use of a client would make every node forget every client.
drop trigger clients_changed on clients;
create trigger clients_changed
  after insert or delete or truncate
    or update of kind, name, owner_account_id, redirect_uris, native, updated_at, suspended_at
  on clients
  for each statement execute function notify_gatehouse_changes('clients');

-- Down Migration

drop trigger clients_changed on clients;
create trigger clients_changed after insert or update or delete or truncate on clients
  for each statement execute function notify_gatehouse_changes('clients');
alter table clients drop column last_used_at;
