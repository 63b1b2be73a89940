-- An approved client that gets a new redirect host or owner waits for the organizations again.
-- Up Migration

-- Mails to the owners and admins of an organization about a client that waits: at most one a day. No
-- references: a change of a client must not wait for the deletion of an organization.
create table approval_mails (
  organization_id text not null,
  client_id text not null,
  -- No mail is sent before this time.
  mail_at timestamptz not null,
  -- True if a mail is to be sent then.
  is_due boolean not null,
  primary key (organization_id, client_id)
);
create index approval_mails_mail_at on approval_mails (mail_at);
create index approval_mails_due on approval_mails (mail_at) where is_due;

-- The part of a redirect URI that names where people are sent: scheme, host and port. Registered URIs
-- contain no user information and no backslashes.
create function redirect_target(uri text) returns text language sql immutable as $$
  select substring(uri from '^https?://[^/?#]*|^[^:]*:')
$$;

create function withdraw_client_approvals() returns trigger language plpgsql as $$
begin
  if old.owner_account_id is not distinct from new.owner_account_id and not exists (
      select redirect_target(uri) from unnest(new.redirect_uris) uri
      except select redirect_target(uri) from unnest(old.redirect_uris) uri) then
    return null;
  end if;
  with withdrawn as (
    delete from client_decisions where client_id = new.id and is_approved returning organization_id)
  insert into approval_mails (organization_id, client_id, mail_at, is_due)
    select organization_id, new.id, new.updated_at, true
      from withdrawn join organizations o on o.id = organization_id where o.asks_first
      order by organization_id
    on conflict (organization_id, client_id) do update set is_due = true;
  return null;
end
$$;
create trigger clients_withdraw_approvals after update of owner_account_id, redirect_uris on clients
  for each row when (old.owner_account_id is distinct from new.owner_account_id
    or old.redirect_uris <> new.redirect_uris)
  execute function withdraw_client_approvals();

-- Down Migration

drop trigger clients_withdraw_approvals on clients;
drop function withdraw_client_approvals();
drop function redirect_target(text);
drop table approval_mails;
