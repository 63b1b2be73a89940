-- Which keys the nodes of this deployment have and had, known by their fingerprints.
-- Up Migration

-- How long a key has been in use, and since when it signs nothing any more. One row for each key
-- there ever was; the times of "current" are null for one that was only accepted.
create table key_sightings (
  kind text not null check (kind in ('cookie', 'token')),
  fingerprint text not null,
  first_seen_at timestamptz not null,
  last_seen_at timestamptz not null,
  first_current_at timestamptz,
  last_current_at timestamptz,
  primary key (kind, fingerprint)
);

-- What each running node has, the current key first. A node that ends takes its row away; one that
-- was killed leaves it, and whoever comes later removes it.
create table node_keys (
  node text primary key,
  seen_at timestamptz not null,
  cookie_keys text[] not null,
  token_keys text[] not null
);

-- Down Migration

drop table node_keys, key_sightings;
