-- When a node noted itself, by the clock of the database, and who it was that operated.
-- Up Migration

-- By a trigger, so that a node of the version before tells its clock as well.
alter table node_keys add column noted_at timestamptz not null default clock_timestamp();
create function note_time() returns trigger language plpgsql as $$
begin
  new.noted_at := clock_timestamp();
  return new;
end
$$;
create trigger node_keys_noted before insert or update on node_keys
  for each row execute function note_time();

-- Of what the operator command did: the account of the operating system, and why.
alter table activity add column operator text, add column reason text;

-- Down Migration

alter table activity drop column operator, drop column reason;
drop trigger node_keys_noted on node_keys;
drop function note_time();
alter table node_keys drop column noted_at;
