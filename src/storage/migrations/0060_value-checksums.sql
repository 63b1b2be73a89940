-- Up Migration

-- Has a row if new tokens, codes, secrets and API keys end with a checksum: in new deployments from
-- their first migration on, in others since tokens.checksums was always.
create table value_checksums (since timestamptz not null default now());
-- Set by storage/migrate.ts if this session has also run the first migration.
insert into value_checksums select now() where current_setting('gatehouse.is_new', true) = 'yes';

-- As in migration 0055: nodes of the version before would refuse these values, so they do not start.
create function refuse_nodes_without_checksums() returns trigger language plpgsql as $$
begin
  if exists (select from value_checksums) then
    raise exception 'tokens, secrets and API keys of this deployment end with a checksum: this older '
      'version would refuse them, so start the newer version';
  end if;
  return new;
end
$$;
create trigger node_keys_checksums before insert or update on node_keys for each row
  when (not coalesce(new.described_at = new.seen_at and (new.runs_with ->> 'accessRules')::integer >= 2, false))
  execute function refuse_nodes_without_checksums();

-- Down Migration

drop trigger node_keys_checksums on node_keys;
drop function refuse_nodes_without_checksums();
drop table value_checksums;
