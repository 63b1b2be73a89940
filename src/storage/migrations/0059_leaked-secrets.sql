-- Client secrets that were found in public: accepted for a grace period, then refused.
-- Up Migration

alter table client_secrets
  add column leaked_at timestamptz,
  add column refused_at timestamptz,
  -- The hash of a refused secret. Its `secret_hash` then matches no value, so that nodes of older
  -- versions, which compare only that column, refuse the secret as well.
  add column refused_hash text;

-- Down Migration

alter table client_secrets
  drop column refused_hash,
  drop column refused_at,
  drop column leaked_at;
