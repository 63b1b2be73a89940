-- What users let a client or an API key reach at most, of what they reach themselves.
-- Up Migration

-- limit_places: ids of organizations and warehouses; null for everything, also what comes later.
alter table connections
  add column limit_places text[],
  add column limit_read_only boolean not null default false,
  -- From then on the connection has ended.
  add column limit_until timestamptz;
create index connections_limit_until on connections (limit_until)
  where limit_until is not null and ended_at is null;
alter table api_keys
  add column limit_places text[],
  add column limit_read_only boolean not null default false;

-- Nodes of the version before know no limits and would ignore them. They do not write accessRules
-- into runs_with: while a limit exists, they can write no row, and so they do not start.
create function refuse_nodes_without_access_rules() returns trigger language plpgsql as $$
begin
  -- An older node leaves both columns as they are in the row of a newer one with its name.
  if coalesce(new.described_at = new.seen_at and new.runs_with ? 'accessRules', false) then
    return new;
  end if;
  if exists (select from connections
      where limit_places is not null or limit_read_only or limit_until is not null)
    or exists (select from api_keys where limit_places is not null or limit_read_only) then
    raise exception 'people have limited what clients and API keys reach, which this older version '
      'would ignore: start the newer version, or end what is limited with it first '
      '(gatehouse connections end --limited)';
  end if;
  return new;
end
$$;
create trigger node_keys_access_rules before insert or update on node_keys
  for each row execute function refuse_nodes_without_access_rules();

-- Down Migration

drop trigger node_keys_access_rules on node_keys;
drop function refuse_nodes_without_access_rules;
drop index connections_limit_until;
alter table connections drop column limit_places, drop column limit_read_only, drop column limit_until;
alter table api_keys drop column limit_places, drop column limit_read_only;
