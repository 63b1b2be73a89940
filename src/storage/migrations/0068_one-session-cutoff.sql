-- Without its row, or with two rows, session_cutoff could not tell which sessions have ended.
-- Up Migration

create unique index session_cutoff_one_row on session_cutoff ((true));

create function keep_session_cutoff() returns trigger language plpgsql as $$
begin
  raise exception 'session_cutoff must keep its row: without it every session has ended';
end
$$;
create trigger session_cutoff_kept before delete or truncate on session_cutoff
  for each statement execute function keep_session_cutoff();

-- Down Migration

drop trigger session_cutoff_kept on session_cutoff;
drop function keep_session_cutoff();
drop index session_cutoff_one_row;
