-- One form for all spellings of an email address (accounts/email.ts). It is made by the program alone,
-- which gives each account that has none its own at the start (accounts/email-keys.ts).
-- Up Migration

-- Null until then, and for good where another account has the same address already. The index on
-- lower(email) of 0001 stays for nodes of the version before, which look there.
alter table accounts add column email_key text constraint accounts_email_key_key unique;
create index accounts_without_email_key on accounts (created_at, id) where email_key is null;

-- Whoever changes an address and knows nothing of keys must not leave the former one.
create function forget_email_key() returns trigger language plpgsql as $$
begin
  new.email_key := null;
  return new;
end
$$;
create trigger accounts_email_changed before update of email on accounts
  for each row when (new.email is distinct from old.email) execute function forget_email_key();

-- Down Migration

drop trigger accounts_email_changed on accounts;
drop function forget_email_key();
alter table accounts drop column email_key;
