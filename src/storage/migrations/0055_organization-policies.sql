-- Organizations decide which clients reach them: all, or only those that they approved.
-- Up Migration

alter table organizations
  -- A client reaches the organization only after it was approved for it.
  add column asks_first boolean not null default false,
  -- Personal API keys, which have no client.
  add column allows_api_keys boolean not null default true;

-- Decisions only: a request is the connection of a member without a decision. A block of the client
-- (barred_clients) wins over an approval.
create table client_decisions (
  organization_id text not null references organizations on delete cascade,
  client_id text not null references clients on delete cascade,
  -- False if it was declined, with a sentence for the people who asked.
  is_approved boolean not null,
  sentence text,
  decided_at timestamptz not null,
  -- The owner or admin; null for the operator, and after that account was deleted.
  decided_by text references accounts on delete set null,
  primary key (organization_id, client_id)
);
create index client_decisions_client_id on client_decisions (client_id);
create index client_decisions_decided_by on client_decisions (decided_by)
  where decided_by is not null;

-- Like a block: by client. Resource servers then ask again about every token of the client.
create trigger client_decisions_named after insert or update or delete on client_decisions
  for each row execute function notify_named_change('bars', 'client_id');
create trigger client_decisions_emptied after truncate on client_decisions
  for each statement execute function notify_named_change();

-- What a resource server remembers may not contain the organization, so its id alone (trigger
-- organizations_told) would not be enough: also announce the members.
create function announce_organization_members() returns trigger language plpgsql as $$
begin
  perform pg_notify('gatehouse_named_changes', 'access ' || account_id)
    from organization_memberships where organization_id = new.id and account_id is not null;
  return null;
end
$$;
create trigger organizations_told_members after update on organizations
  for each row when (old.asks_first <> new.asks_first or old.allows_api_keys <> new.allows_api_keys)
  execute function announce_organization_members();

-- As in migration 0052, for versions that know limits but no policies.
create function refuse_nodes_without_policies() returns trigger language plpgsql as $$
begin
  if coalesce(new.described_at = new.seen_at and (new.runs_with ->> 'accessRules')::integer >= 2, false)
    or not exists (select from organizations where asks_first or not allows_api_keys) then
    return new;
  end if;
  raise exception 'organizations decide which clients or API keys reach them, which this older '
    'version would ignore: start the newer version, or open them with it first '
    '(gatehouse organizations policy ID open --api-keys allow)';
end
$$;
create trigger node_keys_policies before insert or update on node_keys
  for each row execute function refuse_nodes_without_policies();

-- Down Migration

drop trigger node_keys_policies on node_keys;
drop function refuse_nodes_without_policies();
drop trigger organizations_told_members on organizations;
drop function announce_organization_members();
drop table client_decisions;
alter table organizations drop column allows_api_keys, drop column asks_first;
