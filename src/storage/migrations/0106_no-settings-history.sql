-- The settings file has its history where its operators keep it, for example in git.
-- Up Migration

drop table settings_history;
alter table settings_reload drop column message;

-- Down Migration

alter table settings_reload add column message text;
create table settings_history (
  number integer primary key,
  hash text not null,
  text text,
  not_kept_because text,
  taken_at timestamptz not null,
  node text not null,
  message text
);
