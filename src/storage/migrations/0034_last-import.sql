-- When an import last brought everything to the state of its file, and what it changed.
-- Up Migration

create table last_import (
  is_the_only_one boolean primary key default true check (is_the_only_one),
  succeeded_at timestamptz not null,
  changes jsonb not null
);

-- Down Migration

drop table last_import;
