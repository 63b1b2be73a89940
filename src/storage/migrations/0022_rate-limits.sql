-- Attempts that are limited, counted for all nodes where the tokens are kept in PostgreSQL.
-- Up Migration

-- The columns and their order are those that rate-limiter-flexible writes.
create table rate_limits (
  -- The name of the limit and a hash.
  key text primary key,
  points integer not null default 0,
  -- Milliseconds since the epoch.
  expire bigint
);
create index rate_limits_expire on rate_limits (expire);

-- Down Migration

drop table rate_limits;
