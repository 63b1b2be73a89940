-- The keys of one user in the order of their list: else the list reads the keys of all users until enough are theirs.
-- Up Migration

create index api_keys_of_account on api_keys (account_id, created_at, id);
drop index api_keys_account_id;

-- Down Migration

create index api_keys_account_id on api_keys (account_id);
drop index api_keys_of_account;
