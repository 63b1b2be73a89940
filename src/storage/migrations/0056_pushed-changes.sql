-- Changes of memberships that another system pushes: when each thing was true, so that an older line or
-- file does not overwrite it, and how much was removed in the last hour.
-- Up Migration

create table known_times (
  -- Its type and ids; for a deleted account or place a name by which it was known.
  thing text primary key,
  account_id text references accounts on delete cascade,
  organization_id text references organizations on delete cascade,
  warehouse_id text references warehouses on delete cascade,
  as_of timestamptz not null,
  -- An import wrote it. A later import may have an older file, and still counts.
  by_import boolean not null,
  -- The latest as_of of a line that ended it: lines about what depended on it are compared with this.
  ended_as_of timestamptz,
  -- Null while the thing exists; afterwards, when the row is deleted.
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
