-- Each decision reads the ends with the user or the client, so nothing has to repeat them in the token store.
-- Up Migration

drop table redis_masters;
drop table ends_carried_out;
-- Until when the authorization could be used, if a token store brought it back.
alter table ended_authorizations add forgotten_at timestamptz not null default now() + interval '1 year';
alter table ended_authorizations alter forgotten_at drop default;
drop index ended_authorizations_at;
create index ended_authorizations_forgotten_at on ended_authorizations (forgotten_at);
create index ended_machine_tokens_client_id on ended_machine_tokens (client_id);

-- Down Migration

alter table ended_authorizations drop forgotten_at;
