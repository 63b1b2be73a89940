-- Which import is running: no other one writes meanwhile. It is a row because all connections of the
-- embedded database share one session, in which advisory locks of a session keep nobody out.
-- Up Migration

create table running_import (
  is_the_only_one boolean primary key default true check (is_the_only_one),
  holder text not null,
  started_by text not null,
  started_at timestamptz not null,
  expires_at timestamptz not null
);

-- Down Migration

drop table running_import;
