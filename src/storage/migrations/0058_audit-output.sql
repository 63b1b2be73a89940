-- Every activity goes out on the log once, and other systems read it by cursor. Ids are committed out
-- of order, so a reader that remembers only an id would miss the entries of slow transactions.
-- Up Migration

-- No backfill and no rewrite of the table: entries from before this migration are read by id.
alter table activity add column xact xid8, add column trace_id text;
alter table activity alter column xact set default pg_current_xact_id();
-- Has no entry to sort yet, but reads the table: writers wait 0.5 s per 1,000,000 entries (measured).
create index activity_xact on activity (xact, id) where xact is not null;

-- Names the counter of transactions: another cluster counts from another number, and a copy of the
-- database in the same cluster is not the same log.
create function audit_origin() returns text language sql stable as $$
  select system_identifier || '/' ||
      (select oid from pg_database where datname = current_database())
    from pg_control_system()
$$;

create table audit_output (
  is_the_only_one boolean primary key default true check (is_the_only_one),
  -- Part of each cursor. Changes when the database is restored into another cluster.
  generation text not null,
  origin text not null,
  -- Entries up to this id are older than the generation: all of them are committed.
  old_until bigint not null,
  -- The last entry on the log; the transaction is 0 while the log is among the old entries.
  xact xid8 not null,
  id bigint not null,
  -- The node that writes to the log.
  holder text,
  expires_at timestamptz
);
insert into audit_output (generation, origin, old_until, xact, id)
  select left(replace(gen_random_uuid()::text, '-', ''), 12), audit_origin(), last, '0', last
    from (select coalesce(max(id), 0) as last from activity) old;

-- Down Migration

drop table audit_output;
drop function audit_origin();
drop index activity_xact;
alter table activity drop column xact, drop column trace_id;
