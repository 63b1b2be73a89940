-- Indexes for statements that read a whole table, whatever they were looking for.
-- Up Migration

create index ended_authorizations_account_id on ended_authorizations (account_id);
create index client_problems_request_id on client_problems (request_id);
create index accounts_suspended on accounts (id) where suspended_at is not null;
create index accounts_of_doctor on accounts (created_at)
  where email like 'doctor-%@gatehouse.invalid';
create index api_keys_limited on api_keys (id) where limit_places is not null or limit_read_only;
-- Keys about whose end no mail was begun: each node asks for them every minute.
create index api_keys_unannounced on api_keys (expires_at)
  where expiry_mailed_at is null and expires_at - created_at >= interval '14 days';

-- Down Migration

drop index api_keys_unannounced, api_keys_limited, accounts_of_doctor, accounts_suspended,
  client_problems_request_id, ended_authorizations_account_id;
