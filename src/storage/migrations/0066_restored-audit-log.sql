-- After a restore elsewhere, the log is read from the first transaction of its generation, and not
-- through all restored entries, whose transactions say nothing.
-- Up Migration

alter table audit_output add column first_xact xid8 not null default '0';

-- Down Migration

alter table audit_output drop column first_xact;
