-- Who checked a client, and what people reported about clients.
-- Up Migration

-- The name belongs to the mark of that time only: a node of an earlier version changes `verified_at`
-- alone, and the name is then ignored.
alter table clients
  add column verified_by text,
  add column verified_by_at timestamptz;

-- At most one report of each person about each client.
create table client_reports (
  client_id text not null references clients on delete cascade,
  account_id text not null references accounts on delete cascade,
  reason text not null,
  sentence text,
  at timestamptz not null,
  primary key (client_id, account_id)
);
create index client_reports_account_id on client_reports (account_id);
create index client_reports_at on client_reports (at);

-- Down Migration

drop table client_reports;
alter table clients drop column verified_by, drop column verified_by_at;
