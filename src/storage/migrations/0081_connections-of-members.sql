-- The page of an organization reads what it shows by index, whatever the number of members.
-- Up Migration

-- The connections of each organization's members: a join of the two tables, kept by the triggers
-- below. It may also have connections whose end date has come and which no job has ended yet.
create table member_connections (
  organization_id text not null,
  client_id text not null,
  account_id text not null,
  connected_at timestamptz not null,
  primary key (account_id, client_id, organization_id),
  constraint member_connections_membership_fkey foreign key (account_id, organization_id)
    references organization_memberships (account_id, organization_id) on delete cascade,
  constraint member_connections_connection_fkey foreign key (account_id, client_id)
    references connections on delete cascade
);
insert into member_connections
  select m.organization_id, n.client_id, n.account_id, n.connected_at
  from connections n join organization_memberships m on m.account_id = n.account_id
  where n.ended_at is null;
create index member_connections_latest
  on member_connections (organization_id, client_id, connected_at, account_id);

-- The key share locks wait for a deletion in progress. A consent locks the account's row, and the
-- foreign key of a new membership waits for it, so that one of the two always sees the other.
create function keep_connection_of_member() returns trigger language plpgsql as $$
begin
  if new.ended_at is not null then
    delete from member_connections where account_id = new.account_id and client_id = new.client_id;
  else
    insert into member_connections as kept
      select organization_id, new.client_id, account_id, new.connected_at
        from organization_memberships where account_id = new.account_id for key share
      on conflict (account_id, client_id, organization_id) do update
        set connected_at = excluded.connected_at where kept.connected_at <> excluded.connected_at;
  end if;
  return null;
end
$$;
create trigger connections_of_members after insert or update of ended_at, connected_at
  on connections for each row execute function keep_connection_of_member();

create function keep_connections_of_new_member() returns trigger language plpgsql as $$
begin
  insert into member_connections
    select new.organization_id, client_id, account_id, connected_at
      from connections where account_id = new.account_id and ended_at is null for key share
    on conflict do nothing;
  return null;
end
$$;
create trigger memberships_of_connections after insert on organization_memberships
  for each row when (new.account_id is not null) execute function keep_connections_of_new_member();

create index organization_memberships_admins on organization_memberships (organization_id, role, id)
  where role in ('owner', 'admin');
create index organization_memberships_machines on organization_memberships (organization_id, id)
  where client_id is not null;
-- organization_memberships_joined begins with the same column.
drop index organization_memberships_organization_id;

-- What owners, admins or the operator decided about a client, for the logs of all members.
create index activity_decisions on activity ((details ->> 'organization_id'), id)
  where account_id is null and action in ('client_barred', 'client_admitted');

-- Down Migration

drop index activity_decisions;
create index organization_memberships_organization_id on organization_memberships (organization_id);
drop index organization_memberships_machines, organization_memberships_admins;
drop trigger memberships_of_connections on organization_memberships;
drop function keep_connections_of_new_member();
drop trigger connections_of_members on connections;
drop function keep_connection_of_member();
drop table member_connections;
