-- Personal API keys: each acts as the person who made it.
-- Up Migration

create table api_keys (
  id text primary key,
  account_id text not null
    constraint api_keys_account_id_fkey references accounts on delete cascade,
  name text not null,
  key_hash text not null constraint api_keys_key_hash_key unique,
  last_four text not null,
  created_at timestamptz not null,
  expires_at timestamptz,
  last_used_at timestamptz
);
create index api_keys_account_id on api_keys (account_id);
create index api_keys_expires_at on api_keys (expires_at);

-- Not for last_used_at: every use of a key would make every node forget every key. Nor for a new
-- key, which nobody remembers.
create trigger api_keys_changed
  after update of account_id, key_hash, expires_at or delete or truncate on api_keys
  for each statement execute function notify_gatehouse_changes('api-keys');

-- Down Migration

drop table api_keys;
