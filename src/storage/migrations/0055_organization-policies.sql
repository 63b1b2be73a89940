-- Policies: all clients reach an organization, or only clients that the organization approved.
-- Up Migration

alter table organizations
  -- True if only approved clients reach the organization.
  add column asks_first boolean not null default false,
  -- True if personal API keys reach the organization.
  add column allows_api_keys boolean not null default true;

-- Contains no requests: a request is the connection of a member without a row here. A block
-- (table barred_clients) wins over an approval.
create table client_decisions (
  organization_id text not null references organizations on delete cascade,
  client_id text not null references clients on delete cascade,
  -- False if the client was declined; `sentence` says why, for the people who connected it.
  is_approved boolean not null,
  sentence text,
  decided_at timestamptz not null,
  -- The owner or admin; null if the operator decided, or if the account was deleted.
  decided_by text references accounts on delete set null,
  primary key (organization_id, client_id)
);
create index client_decisions_client_id on client_decisions (client_id);
create index client_decisions_decided_by on client_decisions (decided_by)
  where decided_by is not null;

-- Announces the client, as for a block: resource servers introspect its tokens again.
create trigger client_decisions_named after insert or update or delete on client_decisions
  for each row execute function notify_named_change('bars', 'client_id');
create trigger client_decisions_emptied after truncate on client_decisions
  for each statement execute function notify_named_change();

-- An answer that a resource server cached may not contain the organization. So announce the members,
-- and not only the organization (trigger organizations_told).
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

-- As in migration 0052, but also refuses versions that know limits but no policies.
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
