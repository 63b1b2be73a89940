-- Problems of requests that the client authenticated, or that name a registered redirect URI, are kept
-- apart from the others, and only they cause mails.
-- Up Migration

-- True if the client authenticated, or sent a registered redirect URI, and only its owner can mend it.
alter table client_problems add column is_mailed boolean not null default false;

-- Down Migration

alter table client_problems drop column is_mailed;
