-- The machine clients of a warehouse are counted without its users.
-- Up Migration

create index warehouse_rights_machines on warehouse_rights (warehouse_id) where client_id is not null;

-- Down Migration

drop index warehouse_rights_machines;
