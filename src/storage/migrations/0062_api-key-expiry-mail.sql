-- Whether the user was mailed that an API key will expire: one mail per key, from whichever node.
-- Up Migration

alter table api_keys add column expiry_mailed_at timestamptz;

-- Down Migration

alter table api_keys drop column expiry_mailed_at;
