-- `gatehouse audit` goes from an entry to the log lines of its request, and back, and finds what one
-- import changed. Entries of earlier versions, and of the operator command, name no request.
-- Up Migration

alter table activity add column request_id text;
create index activity_request_id on activity (request_id) where request_id is not null;
create index activity_import_id on activity ((details ->> 'import_id'), id desc)
  where (details ->> 'import_id') is not null;

-- Down Migration

drop index activity_import_id;
alter table activity drop column request_id;
