-- What a node asks unasked: which account, client or key to forget, and whether anything can be kept.
-- Up Migration

-- On a channel of its own: nodes of the version before listen to the triggers that there are. The
-- trigger's arguments are the topic, and the columns that name the entry: two at most, of which one may be null. Nobody
-- remembers when something was last used, and many requests write it.
create function notify_named_change() returns trigger language plpgsql as $$
declare
  version jsonb;
begin
  if tg_op = 'TRUNCATE' then
    perform pg_notify('gatehouse_named_changes', 'everything');
  elsif tg_op <> 'UPDATE' or to_jsonb(old) - 'last_used_at' <> to_jsonb(new) - 'last_used_at' then
    foreach version in array array[to_jsonb(old), to_jsonb(new)] loop
      continue when version is null;
      perform pg_notify(
        'gatehouse_named_changes',
        concat_ws(' ', tg_argv[0], version ->> tg_argv[1], version ->> tg_argv[2])
      );
    end loop;
  end if;
  return null;
end
$$;

-- A new account, client or API key is told to nobody: that there is none is not remembered.
create trigger accounts_named after update or delete on accounts
  for each row execute function notify_named_change('accounts', 'id');
-- A client carries its owner's name. Of all, because one may be given to this owner meanwhile.
create trigger account_names_named after update of name on accounts
  for each row when (old.name is distinct from new.name)
  execute function notify_named_change('clients');
create trigger clients_named after update or delete on clients
  for each row execute function notify_named_change('clients', 'id');
create trigger client_secrets_named after insert or update or delete on client_secrets
  for each row execute function notify_named_change('clients', 'client_id');
create trigger api_keys_named after update or delete on api_keys
  for each row execute function notify_named_change('api-keys', 'key_hash');
create trigger connections_named after insert or update or delete on connections
  for each row execute function notify_named_change('connections', 'account_id', 'client_id');

create trigger organization_memberships_named
  after insert or update or delete on organization_memberships
  for each row execute function notify_named_change('access', 'account_id', 'client_id');
create trigger warehouse_rights_named after insert or update or delete on warehouse_rights
  for each row execute function notify_named_change('access', 'account_id', 'client_id');
-- Of everybody: who owns or administers the organization reaches every warehouse of it.
create trigger warehouses_named after insert or update or delete on warehouses
  for each row execute function notify_named_change('access');
-- A new one has no members yet, and the members of a deleted one go with it.
create trigger organizations_named after update on organizations
  for each row execute function notify_named_change('access');

create trigger accounts_emptied after truncate on accounts
  for each statement execute function notify_named_change();
create trigger clients_emptied after truncate on clients
  for each statement execute function notify_named_change();
create trigger client_secrets_emptied after truncate on client_secrets
  for each statement execute function notify_named_change();
create trigger api_keys_emptied after truncate on api_keys
  for each statement execute function notify_named_change();
create trigger connections_emptied after truncate on connections
  for each statement execute function notify_named_change();
create trigger organization_memberships_emptied after truncate on organization_memberships
  for each statement execute function notify_named_change();
create trigger warehouse_rights_emptied after truncate on warehouse_rights
  for each statement execute function notify_named_change();
create trigger warehouses_emptied after truncate on warehouses
  for each statement execute function notify_named_change();

-- Its one row is updated to find out whether the server keeps anything.
create table write_probe (at timestamptz not null);
insert into write_probe values (now());

-- Fails where the disk is full: an update of one row finds room in its page for long. What does not
-- fit into the memory of the query goes to a file beside the tables, and is gone with the query.
create function fill_temporary_file() returns boolean language sql volatile
  set work_mem = '64kB' set temp_tablespaces = ''
  as $$ select count(*) > 0 from unnest(array_fill(repeat('x', 1000), array[100])) $$;

-- Down Migration

drop function fill_temporary_file();
drop table write_probe;
drop function notify_named_change() cascade;
