-- What resource servers are told: an API key by its id, where nodes know its hash, and which
-- organization changed, where nodes forget the access of everybody. Nodes of before listen to neither.
-- Up Migration

-- After those of 0024, by name: a node forgets before it tells anybody to ask.
create trigger api_keys_told after update or delete on api_keys
  for each row execute function notify_named_change('api-key-ids', 'id');
create trigger warehouses_told after insert or update or delete on warehouses
  for each row execute function notify_named_change('organizations', 'organization_id');
create trigger organizations_told after update on organizations
  for each row execute function notify_named_change('organizations', 'id');

-- Down Migration

drop trigger api_keys_told on api_keys;
drop trigger warehouses_told on warehouses;
drop trigger organizations_told on organizations;
