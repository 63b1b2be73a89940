-- People write to the operator (brand.support) if something is wrong with a client.
-- Up Migration

drop table client_reports;

-- Down Migration

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
