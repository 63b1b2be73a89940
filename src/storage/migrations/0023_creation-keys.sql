-- What a form that was sent twice, or whose answer was lost, made the first time.
-- Up Migration

-- A hash of the form's own key and of what was typed. Null for what no such form made.
alter table clients
  add column creation_key text,
  add constraint clients_creation_key_key unique (owner_account_id, creation_key);
alter table api_keys
  add column creation_key text,
  add constraint api_keys_creation_key_key unique (account_id, creation_key);

-- Down Migration

alter table api_keys drop column creation_key;
alter table clients drop column creation_key;
