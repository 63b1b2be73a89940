-- A new way to sign in uses up the one-time links of its account: whoever held one before its owner came
-- must not set a password after that.
-- Up Migration

-- Whoever adds it: its person, an import, a node of the version before. `forget_password_links` (0028) goes
-- by the id of an account.
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
