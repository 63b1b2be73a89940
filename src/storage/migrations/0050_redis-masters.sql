-- Which Redis servers keep the tokens, so that one that may have lost ends is recognized.
-- Up Migration

-- A master has another replication id after each restart and each failover. It is ready when the
-- recorded ends of the last day have been repeated on it. One that another server replaced is deleted.
create table redis_masters (
  replication_id text primary key,
  replication_offset bigint not null,
  is_ready boolean not null default false
);

-- Down Migration

drop table redis_masters;
