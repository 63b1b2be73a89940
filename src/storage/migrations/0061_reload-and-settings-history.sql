-- Reloads of the settings on every node, and the latest texts of the settings file.
-- Up Migration

-- One row, whose lock gives concurrent requests to reload their numbers in order. A number is a time,
-- in milliseconds since 1970, so that numbers also grow after the restore of an older backup.
create table settings_reload (
  is_only boolean primary key default true check (is_only),
  number bigint not null,
  previous bigint not null,
  message text
);

-- hash: of the text; if the text is not kept, of the settings without secrets.
create table settings_history (
  number integer primary key,
  hash text not null,
  text text,
  not_kept_because text,
  taken_at timestamptz not null,
  node text not null,
  message text
);

-- Down Migration

drop table settings_history, settings_reload;
