-- The scope of a refused request: there are none here, and many libraries send one unasked.
-- Up Migration

-- As it was sent. Null where none was.
alter table client_problems add column scope text;

-- Down Migration

alter table client_problems drop column scope;
