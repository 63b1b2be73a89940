-- A consent remembers the ownership of the client that its page showed.
-- Up Migration

-- The `owned_since` of the client. If they differ, the client got another owner, and the user is asked again.
alter table connections add column consented_owned_since timestamptz;

-- Down Migration

alter table connections drop column consented_owned_since;
