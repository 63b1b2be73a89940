-- A change of policy is announced as one change of the organization, whatever its size: answers name the
-- organizations that they leave out. A notification for each of 20,000 members ended every change stream.
-- Up Migration

drop trigger organizations_told_members on organizations;
drop function announce_organization_members();

-- Down Migration

create function announce_organization_members() returns trigger language plpgsql as $$
begin
  perform pg_notify('gatehouse_named_changes', 'access ' || account_id)
    from organization_memberships where organization_id = new.id and account_id is not null;
  return null;
end
$$;
create trigger organizations_told_members after update on organizations
  for each row when (old.asks_first <> new.asks_first or old.allows_api_keys <> new.allows_api_keys)
  execute function announce_organization_members();
