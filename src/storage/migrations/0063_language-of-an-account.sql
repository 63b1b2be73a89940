-- The language that a person chose for pages and mails.
-- Up Migration

-- Null: no choice yet. The service checks the value: a language is a file of its own.
alter table accounts add column language text;

-- Down Migration

alter table accounts drop column language;
