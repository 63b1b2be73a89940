-- What each node runs with and whether it is ready, so that `doctor` can compare them.
-- Up Migration

-- A node of the version before writes seen_at only: these columns are true while described_at equals it.
alter table node_keys
  add column described_at timestamptz,
  add column state text, -- starting, ready, not_ready or leaving
  add column ready_since timestamptz,
  add column runs_with jsonb;

-- Down Migration

alter table node_keys
  drop column described_at, drop column state, drop column ready_since, drop column runs_with;
