-- A mailed link removes no passkey, so no account waits for its recovery.
-- Up Migration

drop trigger account_identities_used on account_identities;
drop trigger passkeys_used on passkeys;
drop trigger accounts_recovered on accounts;
drop function forget_recovery_wait();
drop table recovery_waits;

-- Down Migration

create table recovery_waits (
  account_id text constraint recovery_waits_pkey primary key
    constraint recovery_waits_account_id_fkey references accounts on delete cascade,
  started_at timestamptz not null
);

create function forget_recovery_wait() returns trigger language plpgsql as $$
begin
  delete from recovery_waits where account_id = to_jsonb(new) ->> tg_argv[0];
  return null;
end
$$;

create trigger accounts_recovered after update of password_hash, email, suspended_at on accounts
  for each row when (old.password_hash is distinct from new.password_hash
    or old.email is distinct from new.email
    or (old.suspended_at is null and new.suspended_at is not null))
  execute function forget_recovery_wait('id');
create trigger passkeys_used after update of last_used_at on passkeys
  for each row execute function forget_recovery_wait('account_id');
create trigger account_identities_used after update of last_used_at on account_identities
  for each row execute function forget_recovery_wait('account_id');
