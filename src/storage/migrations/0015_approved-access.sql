-- What a person reached when they last approved a client, to show what has changed since.
-- Up Migration

-- Null for connections that were approved before this was kept.
alter table connections add column approved_access jsonb;
alter table connections add column approved_at timestamptz;
update connections set approved_at = connected_at;
alter table connections alter column approved_at set not null;

-- Down Migration

alter table connections drop column approved_access, drop column approved_at;
