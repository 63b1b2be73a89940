-- So that the people of a client are found some at a time, in order.
-- Up Migration

create index connections_connected on connections (client_id, account_id) where ended_at is null;

-- Down Migration

drop index connections_connected;
