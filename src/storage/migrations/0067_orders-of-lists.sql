-- The order of each list that can be long, so that a page reads only the entries that it shows.
-- Up Migration

create index accounts_created_at on accounts (created_at, id);
create index clients_created_at on clients (created_at, id);
create index api_keys_created_at on api_keys (created_at, id);
create index connections_latest on connections (client_id, connected_at, account_id)
  where ended_at is null;
create index organization_memberships_joined on organization_memberships (organization_id, id);
-- The expression of `byName` (storage/pages.ts).
create index organizations_by_name on organizations ((
  regexp_replace(regexp_replace(name, '(\d+)', '0000000000\1', 'g'), '0*(\d{10})', '\1', 'g')
    collate "und-x-icu"), id);
create index warehouses_by_name on warehouses (organization_id, (
  regexp_replace(regexp_replace(name, '(\d+)', '0000000000\1', 'g'), '0*(\d{10})', '\1', 'g')
    collate "und-x-icu"), id);

-- Down Migration

drop index warehouses_by_name, organizations_by_name, organization_memberships_joined,
  connections_latest, api_keys_created_at, clients_created_at, accounts_created_at;
