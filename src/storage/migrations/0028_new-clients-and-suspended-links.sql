-- Nodes remember which clients there are not, and a suspension ends the links to set a password.
-- Up Migration

create trigger clients_added after insert on clients
  for each row execute function notify_named_change('clients', 'id');

-- However it was suspended: by hand, by an import, by another program.
create function forget_password_links() returns trigger language plpgsql as $$
begin
  delete from password_links where account_id = new.id;
  return null;
end
$$;
create trigger accounts_suspended after update of suspended_at on accounts
  for each row when (old.suspended_at is null and new.suspended_at is not null)
  execute function forget_password_links();

-- Those of accounts that are suspended now.
delete from password_links
  where account_id in (select id from accounts where suspended_at is not null);

-- Down Migration

drop trigger accounts_suspended on accounts;
drop function forget_password_links();
drop trigger clients_added on clients;
