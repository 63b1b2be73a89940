-- A deleted person is found in the logs of others by index, and is erased from the log in steps.
-- Up Migration

create index activity_by_account_id on activity ((details ->> 'by_account_id'), id)
  where (details ->> 'by_account_id') is not null;
create index activity_person_id on activity ((details ->> 'person_id'), id)
  where (details ->> 'person_id') is not null;

-- Deleted accounts that are not erased from the whole log yet.
create table erased_people (
  account_id text primary key,
  -- The last erased entry; 0 before the first one.
  after_id bigint not null default 0
);

-- For the deletion of accounts, which sets these to null.
create index barred_clients_barred_by on barred_clients (barred_by) where barred_by is not null;
create index barred_redirects_barred_by on barred_redirects (barred_by) where barred_by is not null;

-- Down Migration

drop index barred_redirects_barred_by, barred_clients_barred_by;
drop table erased_people;
drop index activity_by_account_id, activity_person_id;
