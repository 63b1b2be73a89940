-- A new way to sign in ends the one-time links of its account: a person who held one before the owner of
-- the account came must not set a password after that.
-- Up Migration

-- Also for links that an import or a node of the version before adds. `forget_password_links` (0028) is for
-- rows of `accounts`: it reads another column.
create function forget_password_links_of_account() returns trigger language plpgsql as $$
begin
  delete from password_links where account_id = new.account_id;
  return null;
end
$$;
create trigger account_identities_added after insert on account_identities
  for each row execute function forget_password_links_of_account();
create trigger passkeys_added after insert on passkeys
  for each row execute function forget_password_links_of_account();

-- Down Migration

drop trigger passkeys_added on passkeys;
drop trigger account_identities_added on account_identities;
drop function forget_password_links_of_account();
