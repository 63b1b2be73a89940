-- The machine access tokens of a client are ended all at once by counting on: each carries the
-- generation it was issued in. A number, because a time cannot tell the tokens of one second apart.
-- Up Migration

alter table clients add column token_generation integer not null default 0;

-- Down Migration

alter table clients drop column token_generation;
