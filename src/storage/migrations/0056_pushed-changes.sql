-- For changes that another system pushes: the time of the latest change of each record, so that an
-- older line or file does not overwrite it, and the number of removals in the last hour.
-- Up Migration

create table known_times (
  -- The type and ids of the record; for a deleted account or place, one of its former names.
  thing text primary key,
  account_id text references accounts on delete cascade,
  organization_id text references organizations on delete cascade,
  warehouse_id text references warehouses on delete cascade,
  as_of timestamptz not null,
  -- True if an import wrote the row. A later import overwrites it even with an older file.
  by_import boolean not null,
  -- The latest as_of of a removal. Older lines about records that depended on this one are outdated.
  ended_as_of timestamptz,
  -- When to delete the row; null while the record exists.
  expires_at timestamptz
);
create index known_times_account_id on known_times (account_id) where account_id is not null;
create index known_times_organization_id on known_times (organization_id)
  where organization_id is not null;
create index known_times_warehouse_id on known_times (warehouse_id) where warehouse_id is not null;
create index known_times_pushed on known_times (as_of) where not by_import;
create index known_times_expires_at on known_times (expires_at) where expires_at is not null;

create table pushed_removals (
  at timestamptz not null,
  -- Negative for removals that an operator allows on top of the limit.
  removals integer not null
);
create index pushed_removals_at on pushed_removals (at);

-- Down Migration

drop table pushed_removals, known_times;
