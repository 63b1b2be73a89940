-- Clients that an organization does not let in, whoever approved them.
-- Up Migration

create table barred_clients (
  organization_id text not null references organizations on delete cascade,
  client_id text not null references clients on delete cascade,
  barred_at timestamptz not null,
  -- The owner or admin who did it.
  barred_by text references accounts on delete set null,
  primary key (organization_id, client_id)
);
create index barred_clients_client_id on barred_clients (client_id);

create trigger barred_clients_named after insert or update or delete on barred_clients
  for each row execute function notify_named_change('bars', 'client_id');
create trigger barred_clients_emptied after truncate on barred_clients
  for each statement execute function notify_named_change();

-- Owners and admins of an organization are an actor of their own in the log of somebody else. Not
-- validated: the rows that there are have one of the former four.
alter table activity
  drop constraint activity_actor_check,
  add constraint activity_actor_check
    check (actor in ('person', 'operator', 'client', 'service', 'organization')) not valid;

-- Down Migration

delete from activity where actor = 'organization';
alter table activity
  drop constraint activity_actor_check,
  add constraint activity_actor_check
    check (actor in ('person', 'operator', 'client', 'service'));
drop table barred_clients;
