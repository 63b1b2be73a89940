-- Why requests of a client were refused, for its owner: the last ones, for a few days.
-- Up Migration

create table client_problems (
  id bigint generated always as identity primary key,
  client_id text not null references clients on delete cascade,
  at timestamptz not null,
  step text not null check (step in ('authorize', 'token')),
  error text not null,
  cause text not null,
  -- As it was sent, without the values of its query. Null where none was.
  redirect_uri text,
  -- Null at the authorize step, where no client authenticates.
  auth_method text check (auth_method in ('basic', 'body', 'both', 'none')),
  request_id text not null
);
create index client_problems_client_id on client_problems (client_id, id desc);
create index client_problems_at on client_problems (at);

-- Down Migration

drop table client_problems;
