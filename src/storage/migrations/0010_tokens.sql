-- Up Migration

-- Codes, access tokens, grants, sessions and interactions where no Redis is configured.
-- Times are seconds since the epoch, as in the tokens: they are compared with the service's clock.
CREATE TABLE token_records (
  kind text NOT NULL,
  key text NOT NULL,
  uid text,
  data json NOT NULL,
  expires_at bigint NOT NULL,
  consumed_by text,
  PRIMARY KEY (kind, key)
);
CREATE INDEX token_records_expires_at ON token_records (expires_at);
CREATE INDEX token_records_uid ON token_records (uid) WHERE uid IS NOT NULL;

-- All refresh tokens of one grant, however often it was refreshed. rotated_at is in milliseconds.
CREATE TABLE refresh_families (
  key text PRIMARY KEY,
  rotation integer NOT NULL,
  attempt text NOT NULL,
  rotated_at bigint NOT NULL,
  expires_at bigint NOT NULL,
  data json NOT NULL
);
CREATE INDEX refresh_families_expires_at ON refresh_families (expires_at);

-- Down Migration

DROP TABLE refresh_families;
DROP TABLE token_records;
