-- Every value has a checksum, so no row says whether new ones get one.
-- Up Migration

drop trigger node_keys_checksums on node_keys;
drop function refuse_nodes_without_checksums();
drop table value_checksums;

-- Down Migration

create table value_checksums (since timestamptz not null default now());
insert into value_checksums default values;
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
