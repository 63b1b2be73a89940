-- One number that ends the sessions of all accounts at once, whatever their number.
-- Up Migration

create table session_cutoff (
  -- Added to the session generation of every account. A bigint, because it follows the clock in
  -- microseconds: after the restore of an older database, the next value is again beyond every lost one.
  generation bigint not null
);
insert into session_cutoff values (0);

-- Like the triggers of accounts: the offers of clients end with the sessions, and each node is
-- notified, but only once.
create function end_every_session() returns trigger language plpgsql as $$
begin
  delete from client_offers;
  perform pg_notify('gatehouse_named_changes', 'everything');
  return null;
end
$$;
create trigger session_cutoff_raised after update on session_cutoff
  for each statement execute function end_every_session();

alter table browser_sessions alter column generation type bigint;

-- Down Migration

alter table browser_sessions
  alter column generation type integer using least(generation, 2147483647);
drop table session_cutoff;
drop function end_every_session();
