-- What people, organizations and warehouses are called in the system they are imported from.
-- Up Migration

-- Null for what was made by hand, which no import ever removes.
alter table accounts add column external_id text constraint accounts_external_id_key unique;
alter table organizations
  add column external_id text constraint organizations_external_id_key unique;
alter table warehouses add column external_id text constraint warehouses_external_id_key unique;

-- An import ends a suspension only where an import began it.
alter table accounts add column suspended_by_import boolean not null default false;

-- Down Migration

alter table warehouses drop column external_id;
alter table organizations drop column external_id;
alter table accounts drop column suspended_by_import, drop column external_id;
